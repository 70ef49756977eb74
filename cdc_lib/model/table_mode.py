"""The modes of lake tables, and the metadata columns of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

Mode = Literal["mirror", "soft_delete", "append", "scd2"]
"""``mirror``: one row per primary key, as at the source. ``soft_delete``: the same, but deleted rows are kept and marked.
``append``: one row per change; the only mode of tables without a key. ``scd2``: every version of a row, with the times and
positions at which it began and ended."""

IS_DELETED = "_is_deleted"
"""soft_delete: whether the row is deleted at the source; null in rows that a mirror wrote. Iceberg reserves ``_deleted``."""

VALID_FROM, VALID_TO, IS_CURRENT, TO_GTID = "_valid_from", "_valid_to", "_is_current", "_to_gtid"
"""scd2: commit times of the changes that began and ended the version; whether it is current; GTID of the ending change."""

TO_ORDER = ("_to_epoch", "_to_binlog", "_to_offset", "_to_row")
"""scd2: the order key of the change that ended the version; null while it is current."""

MODE_TYPES = {
    IS_DELETED: "boolean",
    VALID_FROM: "timestamp",
    VALID_TO: "timestamp",
    IS_CURRENT: "boolean",
    **dict(zip(TO_ORDER, ("int", "int", "bigint", "bigint"), strict=True)),
    TO_GTID: "string",
}
"""Lake types of the columns that only some modes have."""

ONE_VERSION_MODES = ("mirror", "soft_delete")
"""Modes whose tables keep one version of each row; earlier ones are in batches alone."""

STATEMENT_ROW = -2
"""``_row`` of a statement's effect: before snapshot rows at the same position, and before the rows of its own event."""

RESET = "t"
"""append: ``_op`` of an entry that invalidates all rows before it: a TRUNCATE, a DROP, a CREATE OR REPLACE, or a new snapshot,
whose rows follow it. Its source columns are null."""


class TableReset(NamedTuple):
    """A statement removed all rows before its position.

    Args:
        epoch: epoch of the statement.
        file: number of its binlog file.
        offset: where its event starts.
        at: when it was committed; None if unknown.
        gtid: GTID of the statement; empty without one.
    """

    epoch: int
    file: int
    offset: int
    at: datetime | None
    gtid: str = ""


@dataclass(frozen=True, slots=True)
class ModeChange:
    """What happens to a lake table when its mode in the source file changes.

    Args:
        how: ``none``: nothing; ``in_place``: the table continues; ``rebuild``: it must be created again.
        description: what happens, for people.
    """

    how: Literal["none", "in_place", "rebuild"]
    description: str
