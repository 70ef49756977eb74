"""What one source table brings to the merge of a lake table; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.plan import TableWork, has_arrived
from cdc_lib.merge.renames import at_point, filled_column, renames_after
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker, PlacedDefault
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import Filled, Superseded
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one source table brings.

    Args:
        routed: the source table.
        work: what it needs.
        schemas: the versions of its rows, as they are in the lake.
        renames: of its columns, in order.
    """

    routed: RoutedTable
    work: TableWork
    schemas: tuple[TableSchema, ...]
    renames: tuple[ColumnRename, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that it brings; after a merge of several nobody can tell whose were the last of their keys."""
        files = (file for piece in self.work.inputs for file in piece.batch.manifest.files)
        return sum(file.rows for file in files if file.table == self.routed.table)

    def waiting(self, columns: Iterable[LakeColumn]) -> Marker:
        """Return its marker, with the values for columns that the lake table does not have yet."""
        have = {column.name.lower() for column in columns}
        waiting: dict[str, PlacedDefault] = {}  # the last value of a column goes to all rows that those before it go to
        for one, column in self._kept():
            if column.lower() not in have:
                waiting[column.lower()] = one
        told = (
            one for one in waiting.values() if one.added.value is not None
        )  # NULL is what a new column has automatically
        return replace(self.work.marker, pending_defaults=tuple(told))

    def filled(self, source: str) -> list[Filled]:
        """Return what its rows have in columns that were added after them."""
        whose = self.routed.constants(source)
        return [Filled(one.before, column, one.added.value, whose) for one, column in self._kept()]

    def superseded(self, source: str, state: LakeTable | None) -> list[Superseded]:
        """Return which of its rows are taken out, or end; of these also such as come in the same merge."""
        return _rules(self.work, self.routed.constants(source), standing=_has_rows_of(state, self.routed.table))

    @property
    def entries(self) -> tuple[TableReset, ...]:
        """The entries of a list of changes that take all rows before them."""
        if self.work.mode != "append":
            return ()
        return (*self.work.resets, *((self.work.list_start,) if self.work.list_start is not None else ()))

    def has_arrived(self, state: LakeTable) -> bool:
        """Whether the lake table has what it brought."""
        return has_arrived(state.markers[self.routed.table], self.work)

    def _kept(self) -> Iterator[tuple[PlacedDefault, str]]:
        return kept_fills(self.work.added_defaults, self.renames, self.routed.target.keeps)


def kept_fills(
    fills: Iterable[PlacedDefault], renames: Sequence[ColumnRename], keeps: Callable[[str], bool]
) -> Iterator[tuple[PlacedDefault, str]]:
    """Yield the values for columns that go into a lake table, with what these are called now.

    Args:
        fills: of a source table, in order.
        renames: of its columns, in order.
        keeps: whether a column, by its name, goes there.
    """
    for one in fills:
        column = filled_column(one.added.column, renames_after(at_point(one.before.just_after()), renames))
        if column is not None and keeps(column):
            yield one, column


def _rules(work: TableWork, whose: Mapping[str, str], *, standing: bool) -> list[Superseded]:
    """Return which rows of a source table are taken out, or end; of these also such as come in the same merge."""
    if work.mode in ("soft_delete", "scd2"):
        found = [Superseded(Point(one.epoch, one.file, one.offset), whose, at=one.at) for one in work.resets]
        if standing and work.rebuild_before is not None:
            found.append(Superseded(work.rebuild_before, whose, at=work.rebuild_at, by_snapshot=True))
        if work.rewrite is not None:  # of a table without rows too: so its changes are taken epoch by epoch
            found.append(Superseded(work.rewrite[1], whose, since=work.rewrite[0]))
        return found
    if not standing:
        return []
    if work.mode == "append":
        found = _rules_of_list(work, whose)
    else:
        before = max(filter(None, (work.rebuild_before, work.reset_before)), default=None)
        found = [Superseded(before, whose, reads=True)] if before is not None else []
    if work.rewrite is not None:
        found.append(Superseded(work.rewrite[1], whose, reads=work.rewrite_reads, since=work.rewrite[0]))
    return found


def _rules_of_list(work: TableWork, whose: Mapping[str, str]) -> list[Superseded]:
    """Return which entries of a list of changes are taken out: those that a late first snapshot holds.

    An entry before a new snapshot's rows voids those before it, which stay. Rows that an earlier snapshot read at the very same
    place stand after that entry: they are taken out.
    """
    if work.list_start is not None and work.rebuild_before is not None:
        low = Point(work.list_start.epoch, work.list_start.file, work.list_start.offset)
        return [Superseded(work.rebuild_before, whose, reads=True, since=low)] if low < work.rebuild_before else []
    if work.supersedes is not None:
        return [Superseded(work.supersedes, whose)]
    # A first snapshot that is merged again: a list begins with it.
    begins = work.rebuild_before is not None and work.rewrite is not None
    return [Superseded(work.rebuild_before, whose, reads=True)] if begins and work.rebuild_before is not None else []


def _has_rows_of(state: LakeTable | None, table: TableName) -> bool:
    """Whether the lake may hold rows of a source table: of a shard that is new it has none yet, and none can be taken out."""
    marker = state.markers.get(table, Marker()) if state is not None else Marker()
    return marker.merged_to is not None or bool(marker.snapshots)
