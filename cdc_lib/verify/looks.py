"""Looks at some rows of one table: the source now, the lake as of a cut. What is not decided waits for a later cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.model.changed_rows import OpenRow, WrongRow
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Point
from cdc_lib.verify.differences import findings
from cdc_lib.verify.judgement import Half, Outcome, RowState, Verdict, are_same, digest, judge, later
from cdc_lib.verify.source_checksums import SourceSums
from cdc_lib.verify.source_side import BEFORE_ALL, SourceSide


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A row to compare.

    Args:
        key: texts of the key's cells.
        batch: key of the manifest of the last batch that changed it; empty if it is not known.
        merge_id: the merge of that batch, or of the cut.
        kept: the source's half of its last look, if it is open since an earlier cut.
    """

    key: tuple[str, ...]
    batch: str
    merge_id: str
    kept: OpenRow | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What some rows are; the others are equal.

    Args:
        wrong: the wrong rows, by name.
        open_rows: rows that a later cut decides, up to the number that may be kept.
        in_flight: number of all such rows.
        undecided: their names.
    """

    wrong: Mapping[str, WrongRow]
    open_rows: tuple[OpenRow, ...]
    in_flight: int
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Looks:
    """Judges rows of one table.

    Args:
        source: reads the source's rows; it has what is compared.
        cut: which the lake is as of, or a later merge that is in flight.
        marker: of the lake table's snapshot.
    """

    side: SourceSide
    source: SourceSums
    cut: Cut
    marker: Marker

    def judged(self, asked: Mapping[str, AskedRow], lake: Mapping[str, RowState], most_open: int) -> Judged:
        """Return the rows that are wrong, and those that stay open.

        Args:
            asked: the rows, by name.
            lake: those that the lake has.
            most_open: so many open rows are kept at most.

        Raises:
            SourceError: the source cannot be read.
        """
        source = self.source.rows({name: one.key for name, one in asked.items()})
        differing = [name for name in asked if not are_same(source.get(name), lake.get(name))]
        outcomes = {name: self._kept(asked[name], lake.get(name)) for name in differing}
        open_names = [name for name, one in outcomes.items() if one.verdict is Verdict.OPEN]
        halves = self.side.seen(self.source, {n: asked[n].key for n in open_names if not outcomes[n].waits})
        for name, half in halves.items():
            outcomes[name] = replace(outcomes[name], verdict=judge(half, lake.get(name), self.lake_at))
        last = {name: half.source for name, half in halves.items()}
        still = [name for name in open_names if outcomes[name].verdict is Verdict.OPEN]
        wrong = [name for name, one in outcomes.items() if one.verdict is Verdict.WRONG]
        rows = tuple(self._open_row(asked[name], outcomes[name], halves.get(name)) for name in still[:most_open])
        record = {
            name: self._wrong_row(name, asked[name], last.get(name, source.get(name)), lake.get(name)) for name in wrong
        }
        return Judged(record, rows, len(still), frozenset(still))

    @property
    def lake_at(self) -> Point:
        """The point up to which the lake table has all changes, and no later one; before all if some rows may have later ones.

        Rows that were read by SELECT may show changes up to the high watermark that was read after them.
        """
        at = Point.at(self.cut.epoch, self.cut.position)
        if self.marker.merged_to is not None:
            at = max(at, self.marker.merged_to)  # of a snapshot after the cut's
        reads = [one.read_to for one in self.marker.snapshots]
        if self.marker.reselected is not None:
            reads.append(self.marker.reselected.high)
        return BEFORE_ALL if any(one > at for one in reads) else at

    def _kept(self, one: AskedRow, lake: RowState | None) -> Outcome:
        return later(one.kept, lake, self.lake_at) if one.kept is not None else Outcome(Verdict.OPEN)

    def _open_row(self, one: AskedRow, outcome: Outcome, half: Half | None) -> OpenRow:
        if half is None:
            if one.kept is None:
                raise AssertionError(one)
            return replace(one.kept, batch=one.batch, merge_id=one.merge_id)
        source = digest(half.source) if half.source is not None else ""
        return OpenRow(one.key, one.batch, one.merge_id, half.low, half.high, source, outcome.before)

    def _wrong_row(self, name: str, one: AskedRow, source: RowState | None, lake: RowState | None) -> WrongRow:
        cut = self.cut
        (row,) = findings(self.source.subject, {name: one.key}, {name: (source, lake)})["rows"]
        columns = tuple(cell.column for cell in row.cells)
        return WrongRow(
            row.kind, dict(row.key), columns, one.batch, one.merge_id, cut.epoch, cut.position, datetime.now(UTC)
        )
