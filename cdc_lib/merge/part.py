"""What one source table brings to the merge of a lake table; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_lib.merge.plan import TableWork, has_arrived
from cdc_lib.merge.renames import at_point, behind, filled_column
from cdc_lib.merge.routing import Share
from cdc_lib.model.lake import LakeColumn, LakeTable, Marker, PlacedFill, Point
from cdc_lib.model.renamed import Renamed
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import Filled, Superseded


@dataclass(frozen=True, slots=True)
class Part:
    """What one source table brings.

    Args:
        share: the source table.
        work: what it needs.
        schemas: the versions of its rows, as they stand in the lake.
        renames: of its columns, in order.
    """

    share: Share
    work: TableWork
    schemas: tuple[TableSchema, ...]
    renames: tuple[Renamed, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that it brings; after a merge of several nobody can tell whose were the last of their keys."""
        files = (file for piece in self.work.pieces for file in piece.batch.manifest.files)
        return sum(file.rows for file in files if file.table == self.share.table)

    def waiting(self, columns: Iterable[LakeColumn]) -> Marker:
        """Return its marker, with the values for columns that the lake table does not have yet."""
        have = {column.name.lower() for column in columns}
        waiting: dict[str, PlacedFill] = {}  # the last value of a column goes to all rows that those before it go to
        for one, column in self._kept():
            if column.lower() not in have:
                waiting[column.lower()] = one
        told = (
            one for one in waiting.values() if one.fill.value is not None
        )  # NULL is what a new column has by itself
        return replace(self.work.marker, waiting=tuple(told))

    def filled(self, source: str) -> list[Filled]:
        """Return what its rows have in columns that were added behind them."""
        whose = self.share.constants(source)
        return [Filled(one.before, column, one.fill.value, whose) for one, column in self._kept()]

    def superseded(self, source: str, stands: LakeTable | None) -> list[Superseded]:
        """Return which of its rows are taken out, or end; of these also such as come in the same merge."""
        return _rules(self.work, self.share.constants(source), standing=_has_rows_of(stands, self.share.table))

    def has_arrived(self, stands: LakeTable) -> bool:
        """Whether the lake table has what it brought."""
        return has_arrived(stands.markers[self.share.table], self.work)

    def _kept(self) -> Iterator[tuple[PlacedFill, str]]:
        return kept_fills(self.work.fills, self.renames, self.share.target.keeps)


def kept_fills(
    fills: Iterable[PlacedFill], renames: Sequence[Renamed], keeps: Callable[[str], bool]
) -> Iterator[tuple[PlacedFill, str]]:
    """Yield the values for columns that go into a lake table, with what these are called now.

    Args:
        fills: of a source table, in order.
        renames: of its columns, in order.
        keeps: whether a column, by its name, goes there.
    """
    for one in fills:
        column = filled_column(one.fill.column, behind(at_point(one.before.behind()), renames))
        if column is not None and keeps(column):
            yield one, column


def _rules(work: TableWork, whose: Mapping[str, str], *, standing: bool) -> list[Superseded]:
    """Return which rows of a source table are taken out, or end; of these also such as come in the same merge."""
    if work.mode in ("soft_delete", "history"):
        found = [Superseded(Point(one.epoch, one.file, one.offset), whose, at=one.at) for one in work.gone]
        if standing and work.anew is not None:
            found.append(Superseded(work.anew, whose, at=work.anew_at, anew=True))
        if work.again is not None:  # of a table without rows too: so its changes are taken epoch by epoch
            found.append(Superseded(work.again[1], whose, since=work.again[0]))
        return found
    if not standing:
        return []
    before = max(filter(None, (work.anew or work.supersedes, work.emptied)), default=None)
    found = []
    if before is not None:
        found.append(Superseded(before, whose, reads=work.anew is not None or work.emptied is not None))
    if work.again is not None:
        found.append(Superseded(work.again[1], whose, reads=work.again_reads, since=work.again[0]))
    return found


def _has_rows_of(stands: LakeTable | None, table: str) -> bool:
    """Whether the lake may hold rows of a source table: of a shard that is new it has none yet, and none can be taken out."""
    marker = stands.markers.get(table, Marker()) if stands is not None else Marker()
    return marker.merged_to is not None or bool(marker.snapshots)
