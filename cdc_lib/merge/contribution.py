"""What one source table contributes to the merge of a lake table; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.plan import TableWork, has_arrived
from cdc_lib.merge.renames import at_point, filled_column, renames_after
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker, PlacedDefault, marker_of
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import Filled, Superseded
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one source table contributes.

    Args:
        routed: the source table.
        work: what it needs.
        schemas: the schema versions of its rows, under the lake's column names.
        renames: of its columns, in order.
    """

    routed: RoutedTable
    work: TableWork
    schemas: tuple[TableSchema, ...]
    renames: tuple[ColumnRename, ...] = ()

    @property
    def rows(self) -> int:
        """Rows in its batches, before they are collapsed."""
        files = (file for each in self.work.inputs for file in each.batch.manifest.files)
        return sum(file.rows for file in files if file.table == self.routed.table)

    def waiting(self, columns: Iterable[LakeColumn]) -> Marker:
        """Return its marker, with the defaults of added columns that the lake table does not have yet."""
        have = {column.name.lower() for column in columns}
        waiting = (placed for placed, column in self._kept() if column.lower() not in have)
        # A new column is NULL automatically.
        pending = tuple(placed for placed in waiting if placed.added.value is not None)
        return replace(self.work.marker, pending_defaults=pending)

    def retyped_after(self, point: Point) -> set[str]:
        """Return the columns that a statement after a point declared again, by their names now in lower case."""
        later = [(one, renames_after(at_point(one.at), self.renames)) for one in self.work.retyped if one.at > point]
        found = (filled_column(column.name, renames) for one, renames in later for column in one.columns)
        return {name.lower() for name in found if name is not None}

    def filled(self, source: str) -> list[Filled]:
        """Return the values of its older rows in columns that were added later."""
        constants = self.routed.constants(source)
        return [
            Filled(placed.before, column, placed.added.value, constants, placed.since)
            for placed, column in self._kept()
        ]

    def superseded(self, source: str, state: LakeTable | None) -> list[Superseded]:
        """Return which of its rows are removed or closed, including rows of the same merge."""
        return _rules(self.work, self.routed.constants(source), has_rows=_has_rows_of(state, self.routed.table))

    @property
    def entries(self) -> tuple[TableReset, ...]:
        """The entries of an append table that remove all rows before them."""
        if self.work.mode != "append":
            return ()
        return (*self.work.resets, *((self.work.list_start,) if self.work.list_start is not None else ()))

    def has_arrived(self, state: LakeTable) -> bool:
        """Whether the lake table holds this contribution."""
        return has_arrived(state.markers[self.routed.table], self.work)

    def _kept(self) -> Iterator[tuple[PlacedDefault, str]]:
        return kept_fills(self.work.added_defaults, self.renames, self.routed.target.keeps)


def kept_fills(
    fills: Iterable[PlacedDefault], renames: Sequence[ColumnRename], keeps: Callable[[str], bool]
) -> Iterator[tuple[PlacedDefault, str]]:
    """Yield the defaults of added columns that a lake table keeps, with the columns' current names.

    Args:
        fills: of a source table, in order.
        renames: of its columns, in order.
        keeps: whether the lake table keeps a column of this name.
    """
    found: dict[str, list[tuple[PlacedDefault, str]]] = {}
    for placed in fills:
        column = filled_column(placed.added.column, renames_after(at_point(placed.before.just_after()), renames))
        if column is None or not keeps(column):
            continue
        # The last default of a name covers all rows of the earlier ones, unless a later epoch replays it: another column had the name.
        earlier = found.get(column.lower(), []) if placed.since is not None else []
        found[column.lower()] = [*earlier, (placed, column)]
    yield from sorted(chain.from_iterable(found.values()), key=lambda one: one[0].before)


def _rules(work: TableWork, constants: Mapping[str, str], *, has_rows: bool) -> list[Superseded]:
    """Return which rows of a source table are removed or closed, including rows of the same merge."""
    if work.mode in ("soft_delete", "scd2"):
        rules = [Superseded(Point(one.epoch, one.file, one.offset), constants, at=one.at) for one in work.resets]
        if has_rows and work.rebuild_before is not None:
            rules.append(Superseded(work.rebuild_before, constants, at=work.rebuild_at, by_snapshot=True))
        if work.rewrite is not None:  # also of an empty table: so its changes are merged epoch by epoch
            rules.append(Superseded(work.rewrite[1], constants, since=work.rewrite[0]))
        return rules
    if not has_rows:
        return []
    rules = _rules_of_list(work, constants) if work.mode == "append" else _rules_of_mirror(work, constants)
    if work.rewrite is not None:
        rules.append(Superseded(work.rewrite[1], constants, reads=work.rewrite_reads, since=work.rewrite[0]))
    return rules


def _rules_of_mirror(work: TableWork, constants: Mapping[str, str]) -> list[Superseded]:
    """Return which rows of a mirror are removed: a new snapshot replaces no row that the lake kept at an earlier statement."""
    rebuild, reset = work.rebuild_before, work.reset_before
    kept = work.kept_before(rebuild) if rebuild is not None else None
    if rebuild is None or kept is None:
        before = max(filter(None, (rebuild, reset)), default=None)
        return [Superseded(before, constants, reads=True)] if before is not None else []
    emptied = [Superseded(reset, constants, reads=True)] if reset is not None else []
    return [*emptied, Superseded(rebuild, constants, reads=True, since=kept)]


def _rules_of_list(work: TableWork, constants: Mapping[str, str]) -> list[Superseded]:
    """Return which entries of an append table are removed: those that a late first snapshot holds.

    The start entry of a new snapshot voids all entries before it, which stay. Rows that an earlier snapshot read at the same
    position sort after that entry: they are removed.
    """
    if work.list_start is not None and work.rebuild_before is not None:
        low = Point(work.list_start.epoch, work.list_start.file, work.list_start.offset)
        return [Superseded(work.rebuild_before, constants, reads=True, since=low)] if low < work.rebuild_before else []
    if work.supersedes is not None:
        return [Superseded(work.supersedes, constants)]
    # A first snapshot that is merged again: the table begins with it.
    is_first = work.rebuild_before is not None and work.rewrite is not None
    return (
        [Superseded(work.rebuild_before, constants, reads=True)] if is_first and work.rebuild_before is not None else []
    )


def _has_rows_of(state: LakeTable | None, table: TableName) -> bool:
    """Whether the lake may hold rows of a source table: it has none of a new shard."""
    marker = marker_of(state, table)
    return marker.merged_to is not None or bool(marker.snapshots)
