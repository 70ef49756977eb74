"""One commit of a merge to a lake table: changes, markers, and updates of existing rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.erasure import Erasure
from cdc_lib.model.lake_table import LakeColumn, Marker
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Superseded:
    """Existing rows before a point that a later snapshot replaces, or that a statement removed.

    Args:
        before: the point.
        columns: columns and values that select the rows; empty for all rows of the table.
        reads: whether rows of an earlier snapshot are included (append mode; other rows always are).
        since: rows before this point are excluded; None for no lower bound.
        at: time of the statement or snapshot; None if unknown.
        by_snapshot: whether a snapshot replaces them; the snapshot's own rows are excluded.
    """

    before: Point
    columns: Mapping[str, str]
    reads: bool = False
    since: Point | None = None
    at: datetime | None = None
    by_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """The value of an added column in rows from before a point.

    Args:
        before: the point.
        column: name of the column.
        value: as text; None for NULL.
        columns: columns and values that select the rows; empty for all rows of the table.
        since: rows from before this point keep their value; None for no such point.
    """

    before: Point
    column: str
    value: str | None
    columns: Mapping[str, str]
    since: Point | None = None

    def column_in(self, columns: Iterable[LakeColumn]) -> LakeColumn | None:
        """Return the column of a lake table to fill; None if it does not have it yet."""
        return next((one for one in columns if one.name.lower() == self.column.lower()), None)


@dataclass(frozen=True, slots=True)
class Erased:
    """Existing rows that are removed in every mode, without a mark.

    Args:
        erasure: which keys, and the point before which rows are removed.
        key: columns that the source's key has in the lake table, in its order.
        columns: columns and values that select the rows; empty for all rows of the table.
    """

    erasure: Erasure
    key: tuple[str, ...]
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableCommit:
    """Markers and updates of existing rows in the same commit as the changes.

    Args:
        markers: new marker of each source table.
        supersedes: existing rows that are deleted, marked as deleted or closed.
        fills: new values in existing rows; columns that the table does not have are ignored.
        unfinished_epochs: see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`; for tables with versions.
        merge_id: of the merge that publishes the commit; empty if none does.
        erases: existing rows that are erased.
    """

    markers: Mapping[TableName, Marker]
    supersedes: Sequence[Superseded] = ()
    fills: Sequence[Filled] = ()
    unfinished_epochs: Sequence[int] = ()
    merge_id: str = ""
    erases: Sequence[Erased] = ()
