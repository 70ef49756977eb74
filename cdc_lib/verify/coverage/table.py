"""Compares the ranges of one table that are due, and keeps the result after each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from cdc_lib.model.changed_rows import KEPT_DIFFERENCES
from cdc_lib.model.coverage import Coverage, FoundWrong, Key
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store.coverage import keep_coverage
from cdc_lib.verify.cell_arrays import names_of
from cdc_lib.verify.checksums import Sum, suspects
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.coverage.schedule import Cadence, Unit, accrued, begun, compared, cut_off, next_unit
from cdc_lib.verify.lake_reader import LakeReader
from cdc_lib.verify.lake_tables import OpenedTable
from cdc_lib.verify.looks import AskedRow, Looks
from cdc_lib.verify.source_checksums import SourceSums
from cdc_lib.verify.source_side import SourceSide

UNIT_CHUNKS = 5
"""Chunks of the source that are compared with one pass over the lake's files."""

MAX_OPEN_ROWS = 1000
"""Rows of one table that wait for a later cut; with more, a range does not count as compared."""

LOOKED_AT_ONCE = 2000
"""Rows that are looked up by key on both sides at once."""


@dataclass(frozen=True, slots=True)
class TableCoverage:
    """What a run did with one table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        coverage: after the run.
        ranges: number of ranges that were compared.
        rows: at the source, in these ranges.
        new_wrong: rows that this run found wrong.
        in_flight: rows that a later run decides.
        failed: why some range that is due could not be compared; empty if all were.
    """

    table: TableName
    lake_table: str
    coverage: Coverage
    ranges: int = 0
    rows: int = 0
    new_wrong: tuple[FoundWrong, ...] = ()
    in_flight: int = 0
    failed: str = ""


def why_not_by_ranges(subject: Subject) -> str:
    """Return why a table cannot be compared by ranges of its key; empty if it can."""
    if subject.how == "copies":
        return "it has no key, so that it has no ranges; cdc verify compares it as a whole"
    if subject.folded:
        return "every change is kept (append), so that a key has many rows; cdc verify compares it as a whole"
    if not can_be_chunked(subject.schema):
        return "its key has a type by which no ranges are read; cdc verify compares it as a whole"
    return ""


@dataclass(frozen=True, slots=True)
class CoveredTable:
    """Compares one table at the source with its lake table as of a cut.

    Args:
        began: when the run began (UTC).
    """

    side: SourceSide
    store: ObjectStore
    cut: Cut
    cadence: Cadence
    began: datetime
    now: Callable[[], datetime]
    sleep: Callable[[float], None]

    def compared(
        self, subject: Subject, opened: OpenedTable, coverage: Coverage, stored: Coverage | None
    ) -> TableCoverage:
        """Compare the rows that an earlier run left open or found wrong, and then the ranges that are due.

        Args:
            subject: what is compared.
            opened: the lake table.
            coverage: what is known.
            stored: the document that is stored; None if there is none.

        Raises:
            SourceError: the source cannot be read.
            StoreError: the lake cannot be read.
            ConfigError: the lake cannot have a key of the source.
        """
        settings = self.side.source.config.verify
        source = SourceSums(
            self.side.connection, subject, settings.chunk_rows, settings.statement_delay.total_seconds(), self.sleep
        )
        unit_rows = UNIT_CHUNKS * settings.chunk_rows
        coverage = accrued(self._ready(subject, coverage, unit_rows), self.began, self.cadence)
        copies = [one.key for one in coverage.wrong if one.row.kind == "copies"]
        source.twice.update(names_of(subject.keys, copies))
        looks = Looks(self.side, source, self.cut, opened.state.marker)
        coverage = self._looked_at(coverage, looks, opened, {})
        done = TableCoverage(coverage.table, coverage.lake_table, coverage)
        first = stored
        tried: set[Key | None] = set()
        while (unit := self._next(coverage, unit_rows, tried)) is not None:
            reached, sums, suspicious = self._differing(source, opened, unit)
            looked_at, why = self._all_looked_at(coverage, looks, opened, suspicious)
            if why:
                done = replace(done, failed=why)
                coverage = cut_off(replace(coverage, wrong=looked_at.wrong), unit, reached, sums.rows)
                tried.add(reached[0] if reached is not None else unit.end)
                continue
            at = self.now()
            coverage = compared(looked_at, unit, reached, sums.rows, at, self.cut.epoch, self.cut.position)
            if not self.keep(stored, coverage):
                return replace(done, failed="another task compared the table at the same time")
            done = replace(done, ranges=done.ranges + 1, rows=done.rows + sums.rows, coverage=coverage)
            stored = coverage
        if coverage != stored:
            self.keep(stored, coverage)
        return replace(done, coverage=coverage, in_flight=len(coverage.open_rows), new_wrong=_new(first, coverage))

    def keep(self, before: Coverage | None, after: Coverage) -> bool:
        """Store what is known of the table; False if another task did meanwhile."""
        return keep_coverage(self.store, before, after)

    def _next(self, coverage: Coverage, unit_rows: int, tried: Collection[Key | None]) -> Unit | None:
        if not self.cadence.hours.contains(self.now()):
            return None
        return next_unit(coverage, self.began, self.cadence, unit_rows, tried)

    def _ready(self, subject: Subject, coverage: Coverage, unit_rows: int) -> Coverage:
        """Return the coverage with ranges of the table's key: new ones for another key than before."""
        coverage = replace(coverage, skipped="", gtid_set=self.cut.gtid_set or "")
        key = tuple(f"{cell.column.name} {cell.column.type.text}" for cell in subject.keys)
        if coverage.ranges and coverage.key == key:
            return coverage
        rows = self.side.schemas.estimated_rows_of(subject.schema)
        empty = replace(coverage, key=key, since=self.began, ran_at=self.began, open_rows=(), wrong=())
        return begun(empty, rows, unit_rows)

    def _differing(
        self, source: SourceSums, opened: OpenedTable, unit: Unit
    ) -> tuple[tuple[Key, Key] | None, Sum, dict[str, Key]]:
        """Compare the first chunks of a unit.

        Returns:
            The last key that was compared, or None if it was the unit's last; the source's sum; the rows that differ, or that
            are in the range on one side only, with their keys by name.
        """
        ends: list[Key | None] = []
        reached: tuple[Key, Key] | None = None
        for _ in range(UNIT_CHUNKS):
            reached = source.chunk_end(ends[-1] if ends else unit.after, unit.end)
            if reached is None or reached[0] == unit.end:
                reached = None
                break
            ends.append(reached[0])
        if reached is None:
            ends.append(unit.end)
        bounds = list(pairwise((unit.after, *ends)))
        of_source = _total(source.sum_between(after, end) for after, end in bounds)
        reader = LakeReader(opened.snapshot, source.subject)
        lake = list(reader.between(unit.after_text, reached[1] if reached is not None else unit.end_text))
        if of_source == _total(batch.sum for batch in lake):
            return reached, of_source, {}
        listed = [row for after, end in bounds for row in source.listed_between(after, end)]
        return reached, of_source, suspects(listed, (row for batch in lake for row in batch.listed()))

    def _all_looked_at(
        self, coverage: Coverage, looks: Looks, opened: OpenedTable, keys: dict[str, Key]
    ) -> tuple[Coverage, str]:
        """Look at rows, some at a time, and return what is known then, and why not all could be looked at; empty if all were.

        Where the source's collation orders keys in another way than the lake does, many rows are in other ranges, and are equal.
        """
        names = list(keys)
        for first in range(0, len(names), LOOKED_AT_ONCE):
            if len(coverage.wrong) >= KEPT_DIFFERENCES:
                return coverage, f"{KEPT_DIFFERENCES} wrong rows of the table are known, and no more are looked for"
            some = {name: keys[name] for name in names[first : first + LOOKED_AT_ONCE]}
            coverage = self._looked_at(coverage, looks, opened, some)
            if len(coverage.open_rows) > MAX_OPEN_ROWS:
                return coverage, f"more than {MAX_OPEN_ROWS} rows of a range changed since the last cut"
            self.sleep(self.side.source.config.verify.statement_delay.total_seconds())
        return coverage, ""

    def _looked_at(self, coverage: Coverage, looks: Looks, opened: OpenedTable, keys: dict[str, Key]) -> Coverage:
        """Look at rows, and at those that an earlier look left open or found wrong, and return what is known then."""
        subject, merge_id = looks.source.subject, self.cut.merge_id
        known = dict(zip(names_of(subject.keys, [one.key for one in coverage.wrong]), coverage.wrong, strict=True))
        names = names_of(subject.keys, [one.key for one in coverage.open_rows])
        kept = dict(zip(names, coverage.open_rows, strict=True))
        asked = {name: AskedRow(one.key, "", merge_id) for name, one in known.items()}
        asked |= {name: AskedRow(key, "", merge_id) for name, key in keys.items()}
        asked |= {name: AskedRow(one.key, one.batch, one.merge_id, one) for name, one in kept.items()}
        if not asked:
            return coverage
        lake = opened.rows(subject, [one.key for one in asked.values()])
        judged = looks.judged(asked, lake, MAX_OPEN_ROWS + 1)
        stays = [one for name, one in known.items() if name in judged.undecided or name in judged.wrong]
        found = [FoundWrong(asked[name].key, row) for name, row in judged.wrong.items() if name not in known]
        wrong = tuple((*stays, *found)[-KEPT_DIFFERENCES:])
        return replace(coverage, wrong=wrong, open_rows=judged.open_rows)


def _new(before: Coverage | None, after: Coverage) -> tuple[FoundWrong, ...]:
    """Return the wrong rows that were not known before."""
    known = {one.key for one in before.wrong} if before is not None else set()
    return tuple(one for one in after.wrong if one.key not in known)


def _total(sums: Iterable[Sum]) -> Sum:
    parts = list(sums)
    return Sum(sum(one.rows for one in parts), sum(one.hashes for one in parts))
