"""How a lake table keeps the rows of its source: the modes, and the columns that each has beside the row's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

Mode = Literal["mirror", "soft_delete", "append", "scd2"]
"""``mirror``: one row per primary key, as at the source. ``soft_delete``: the same, and rows that were deleted stay, marked.
``append``: every change a row; the only mode of tables without a key. ``history``: every version of a row, with the time and the
place from which and up to which it stood."""

IS_DELETED = "_is_deleted"
"""soft_delete: whether the row is gone at the source; null in rows that a mirror wrote. Iceberg keeps ``_deleted`` for itself."""

VALID_FROM, VALID_TO, IS_CURRENT, TO_GTID = "_valid_from", "_valid_to", "_is_current", "_to_gtid"
"""scd2: commit times of the change that made the version and of the one that ended it, whether none did, and its GTID."""

TO_ORDER = ("_to_epoch", "_to_binlog", "_to_offset", "_to_row")
"""scd2: the order key of the change that ended the version; null while none did."""

MODE_TYPES = {
    IS_DELETED: "boolean",
    VALID_FROM: "timestamp",
    VALID_TO: "timestamp",
    IS_CURRENT: "boolean",
    **dict(zip(TO_ORDER, ("int", "int", "bigint", "bigint"), strict=True)),
    TO_GTID: "string",
}
"""Lake types of the columns that only some modes have."""

STATEMENT_ROW = -2
"""``_row`` of what a statement did to rows: before those that a snapshot read at the same place, and before its own."""

RESET = "t"
"""append: ``_op`` of an entry that takes all rows before it: a TRUNCATE, a DROP, a CREATE OR REPLACE, or a new snapshot, whose rows follow
it. The row's own columns are null."""


class TableReset(NamedTuple):
    """All rows of before a place were taken by a statement.

    Args:
        epoch: of the place.
        file: number of its binlog file.
        offset: where the statement's event starts.
        at: when it was committed; None where that is not known.
        gtid: of the statement; empty without one.
    """

    epoch: int
    file: int
    offset: int
    at: datetime | None
    gtid: str = ""


@dataclass(frozen=True, slots=True)
class ModeChange:
    """What becomes of a lake table when the source file gives its source table another mode.

    Args:
        how: ``none``: nothing is to do; ``in_place``: the table continues; ``rebuild``: it must be made again.
        description: what becomes of it, for people.
    """

    how: Literal["none", "in_place", "rebuild"]
    description: str
