"""What a table needs when batches are merged once more, whatever it has of them already: pure.

Rule 1: a table that changes are given to again gets all that follow them, up to where it stands: a row that was deleted since
would come back otherwise. Rule 2: what it gets begins no later than where it stands, so that it holds one stretch of the stream
without a gap, whichever order the parts are asked for in. Rule 3: the order key decides between its rows and the changes; where
every change or version counts, those of the stretch are taken out and made anew, as if the table had never had them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.merge.chunks import chunk_of, low_of, read_to_of
from cdc_lib.merge.emptied import Emptied, emptied
from cdc_lib.merge.plan import Batch, Piece, TableWork, following, refuse_unclear, refuse_untold_swap
from cdc_lib.model.batch import Manifest
from cdc_lib.model.lake import Marker, Point, SnapshotMark
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.mode import Mode


@dataclass(frozen=True, slots=True)
class Again:
    """Decides for each table of a backfill; stands in the place of :func:`cdc_lib.merge.plan.work_on`.

    Args:
        begin: where what is asked for begins.
        end: tables are brought up to here at least.
        loaded: between which points the batches at hand lie.
        side: whether the table is one that was made for this, and may hold a part of the source's rows alone.
        whole: whether the source itself began at ``begin``, without reading rows.
    """

    begin: Point
    end: Point
    loaded: tuple[Point, Point]
    side: bool
    whole: bool

    def __call__(self, table: str, mode: Mode, batches: Sequence[Batch], marker: Marker, plan: MergePlan) -> TableWork:
        """Decide what one table needs.

        Args:
            table: ``database.table``.
            mode: how it is merged.
            batches: all that are at hand: whole snapshots, then windows in the stream's order.
            marker: the table's marker; an empty one for a table that is not there.
            plan: tells which tables were left out where.

        Raises:
            MergeConflict: another merge moved the table beyond the batches at hand.
            MergeError: the lake table is not there, and the batches do not hold all of it.
        """
        low, high = self._stretch(marker)
        mine = [batch for batch in batches if batch.holds(table)]
        windows = [batch for batch in mine if _lies_between(batch.manifest, low, high)]
        chunks = _newest_snapshot(mine, marker)
        if not windows and not chunks:
            return TableWork(table, mode, (), marker)
        self._refuse(table, low, high)
        work = TableWork(table, mode, (), _with_mark(marker, chunks).with_merged_to(high), guard=True)
        begun = min(filter(None, (batch.manifest.first_time for batch in chunks)), default=None)
        work = replace(work, ahead=marker.ahead, anew=_anew(table, mode, chunks, marker, plan), anew_at=begun)
        floor = _floor(table, mode, work.marker, plan)
        since = max(filter(None, (low, floor)))
        taken = emptied(table, (batch.manifest for batch in windows), since, Marker())
        new = emptied(table, (batch.manifest for batch in windows), marker.merged_to or since, marker)
        if not self.side and marker == Marker() and not (chunks or taken.before or self.whole):
            raise _not_whole(table)
        after = replace(work.marker, dropped=new.dropped, shadow=new.shadow, waiting=())
        pieces = (*(Piece(batch, None) for batch in chunks), *(Piece(batch, floor) for batch in windows))
        work = replace(work, marker=after, pieces=pieces)
        if mode == "append":
            begin = max(filter(None, (since, work.anew)))
            # Rows of a snapshot that was read where the table ends stand at that place, not before it.
            reads = [low_of(batch.manifest).behind() for batch in chunks]
            return replace(work, again=(begin, max((high, *reads))), again_reads=bool(chunks))
        refuse_untold_swap(table, windows, since)
        refuse_unclear(table, taken.unclear or new.unclear)
        if mode == "history":
            work = replace(work, again=(since, high))
        return following(work, _both(taken, new))

    def _stretch(self, marker: Marker) -> tuple[Point, Point]:
        """Return between which points a table gets all changes."""
        low = min(filter(None, (self.begin, marker.merged_to)))
        low = low if self.side else max(low, self.loaded[0])  # what is gone was merged before
        return low, max(filter(None, (self.end, marker.merged_to)))

    def _refuse(self, table: str, low: Point, high: Point) -> None:
        if low < self.loaded[0] or high > self.loaded[1]:
            raise MergeConflict(
                "another merge moved the table meanwhile", hint="Nothing was changed; begin again.", table=table
            )


def _lies_between(manifest: Manifest, low: Point, high: Point) -> bool:
    window = manifest.window
    if window is None:
        return False
    return Point.at(window.epoch, window.stop) > low and Point.at(window.epoch, window.start) < high


def _newest_snapshot(mine: Sequence[Batch], marker: Marker) -> list[Batch]:
    """Return the chunks of the last whole snapshot at hand, in order; none where the table has a later one, which replaced it.

    What a part of a table brought replaced nothing, and is not all that there was.
    """
    read = [batch for batch in mine if batch.manifest.chunk is not None]
    chunks = [(low_of(batch.manifest), batch) for batch in read if chunk_of(batch.manifest).part is None]
    if not chunks:
        return []
    first = {chunk_of(b.manifest).snapshot_id: low for low, b in sorted(chunks, key=lambda one: one[0], reverse=True)}
    newest = max(first, key=lambda snapshot_id: (first[snapshot_id], snapshot_id))
    if any((mark.low, mark.snapshot_id) > (first[newest], newest) for mark in marker.snapshots if not mark.part):
        return []
    found = [batch for _, batch in chunks if chunk_of(batch.manifest).snapshot_id == newest]
    return sorted(found, key=lambda batch: chunk_of(batch.manifest).number)


def _with_mark(marker: Marker, chunks: Sequence[Batch]) -> Marker:
    """Return the marker of a table that has a whole snapshot."""
    if not chunks or marker.snapshot(chunk_of(chunks[0].manifest).snapshot_id) is not None:
        return marker
    lows = [low_of(batch.manifest) for batch in chunks]
    reads = [read_to_of(batch.manifest) for batch in chunks]
    name = chunk_of(chunks[0].manifest).snapshot_id
    return marker.with_snapshot(SnapshotMark(name, len(chunks), True, lows[0], max(lows), max(reads)))


def _released(table: str, plan: MergePlan) -> frozenset[str]:
    """Return the snapshots that replaced all of the table: changes before them were left out."""
    return frozenset(one.snapshot_id for one in plan.aside if one.table == table and one.snapshot_id)


def _floor(table: str, mode: Mode, after: Marker, plan: MergePlan) -> Point | None:
    """Return before which point changes count for nothing any more; of a list of changes, also those that its snapshot has."""
    released = _released(table, plan)
    lows = (mark.low for mark in after.snapshots if mode == "append" or mark.snapshot_id in released)
    return max(lows, default=None)


def _anew(table: str, mode: Mode, chunks: Sequence[Batch], marker: Marker, plan: MergePlan) -> Point | None:
    """Return before which point rows give way to the chunks: of a list of changes always."""
    if not chunks:
        return None
    name, low = chunk_of(chunks[0].manifest).snapshot_id, low_of(chunks[0].manifest)
    if mode != "append" and name not in _released(table, plan):
        return None
    return low if marker.snapshot(name) is not None else low.behind()


def _both(taken: Emptied, new: Emptied) -> Emptied:
    fills = (*taken.fills, *(one for one in new.fills if one not in taken.fills))
    before = max(filter(None, (taken.before, new.before)), default=None)
    return replace(new, before=before, fills=fills, gone=tuple(sorted({*taken.gone, *new.gone})))


def _not_whole(table: str) -> MergeError:
    return MergeError(
        "the lake table is not there, and the batches of this time do not hold all of its rows",
        hint="Take an earlier --from, so that the table's snapshot, or the statement that made it, lies behind it; "
        "--into side for what changed in this time alone; or cdc snapshot reads the table from the source.",
        table=table,
    )
