"""Compares the key ranges that are due with the source, table by table, and keeps which ones were compared. Without Spark.

    ranges that are due ─▶ checksums, both sides ─▶ rows of unequal ranges ─▶ looks ─▶ ``coverage/<table>/<lake table>.json``

Nothing but these documents is written, each after its comparison and only if no other task has written it meanwhile: a kill at any
point loses at most one comparison. The source is read in one read-only session, each lake table as of its current snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cdc_lib.config import SourceConfig, StoreKeys
from cdc_lib.config.patterns import matches
from cdc_lib.errors import CdcError, ConfigError, SourceError, StoreUnavailable
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.source import Source
from cdc_lib.store.coverage import coverage_of
from cdc_lib.store.cuts import last_cut
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.coverage.hours import Hours
from cdc_lib.verify.coverage.schedule import Cadence, accrued, next_unit
from cdc_lib.verify.coverage.table import UNIT_CHUNKS, CoveredTable, TableCoverage, why_not_by_ranges
from cdc_lib.verify.lake_tables import LakeTables, OpenedTable
from cdc_lib.verify.source_side import WAITS_FOR_SNAPSHOT, SourceSide, source_side

PATIENCE_SECONDS = 600.0
"""Read timeout of one statement."""


@dataclass(frozen=True, slots=True)
class CoverageRun:
    """Compares what is due of one source.

    Args:
        keys: of the store's S3 account, which the lake may be in; those of the environment without.
        now: returns the time (UTC).
    """

    source: Source
    keys: StoreKeys | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    sleep: Callable[[float], None] = time.sleep

    def run(self, patterns: Sequence[str] = ()) -> list[TableCoverage]:
        """Compare the ranges that are due of the tables that match patterns, or of ``verify.tables``.

        Returns:
            What was done with each table of which something was due; nothing outside of ``verify.cover_hours``, or before the first cut.

        Raises:
            ConfigError: ``verify.cover_every`` is not set.
            CursorMoved: the source has no cursor.
            ServerChanged: another server answers.
            SourceError: the source cannot be read.
            StoreError: the catalog cannot be opened.
        """
        began, cadence = self.now(), cadence_of(self.source.config)
        cut = last_cut(self.source.store, self.source.name)
        if cut is None or not cadence.hours.contains(began):
            return []
        due = list(self._due(cut, patterns, began, cadence))
        if not due:
            return []
        drain, lake = self.source.required(DRAIN), self.source.required(LAKE)
        with translate_errors():
            catalog = open_catalog(self.source.config, self.keys)
        with catalog, source_side(self.source, drain, PATIENCE_SECONDS) as side:
            table = CoveredTable(side, self.source.store, cut, cadence, began, self.now, self.sleep)
            lake_tables = LakeTables(catalog, self.source.name)
            return [_covered(table, lake_tables, lake, *one) for one in due]

    def _due(
        self, cut: Cut, patterns: Sequence[str], began: datetime, cadence: Cadence
    ) -> Iterator[tuple[LakeMerge, RoutedTable, TableCut, Coverage | None]]:
        """Yield the tables of which something is to be compared, with what is known of them."""
        there = {(one.table, one.lake_table): one for one in cut.tables if one.dropped is None}
        unit_rows = UNIT_CHUNKS * self.source.config.verify.chunk_rows

        def is_due(known: Coverage) -> bool:
            return next_unit(accrued(known, began, cadence), began, cadence, unit_rows) is not None

        for lake in lake_merges(self.source.config, sorted({table for table, _ in there})):
            for routed in lake.routed_tables:
                one = there.get((routed.table, str(lake.name)))
                if one is None or not self._names(routed, patterns):
                    continue
                known = coverage_of(self.source.store, self.source.name, one.table, one.lake_table)
                if known is None or known.skipped or known.open_rows or known.wrong or is_due(known):
                    yield lake, routed, one, known

    def _names(self, routed: RoutedTable, patterns: Sequence[str]) -> bool:
        if patterns:
            return any(matches(pattern, *routed.table.pair) for pattern in patterns)
        return self.source.config.verify.names(*routed.table.pair)


def cadence_of(config: SourceConfig) -> Cadence:
    """Return how often the ranges of a source are compared.

    Raises:
        ConfigError: ``verify.cover_every`` is not set.
    """
    settings = config.verify
    if settings.cover_every is None:
        raise ConfigError(
            "the source file does not say how often key ranges are compared",
            hint="verify.cover_every: 7d in the source file.",
            source=config.source,
        )
    return Cadence(settings.cover_every, settings.cover_gap, Hours.of(settings.cover_hours))


def _covered(
    table: CoveredTable,
    lake_tables: LakeTables,
    merged: Cursor,
    lake: LakeMerge,
    routed: RoutedTable,
    cut: TableCut,
    known: Coverage | None,
) -> TableCoverage:
    """Compare what is due of one table, or keep why that cannot be done.

    Raises:
        SourceError: the source cannot be read.
        StoreUnavailable: the store does not answer.
    """
    empty = Coverage(table.side.source.name, cut.table, cut.lake_table, table.began, table.began)
    try:
        subject, opened = _subject(table.side, lake_tables, merged, lake, routed, cut)
        if isinstance(subject, Subject) and opened is not None:
            return table.compared(subject, opened, known or empty, known)
        why = str(subject)
    except (SourceError, StoreUnavailable):
        raise
    except CdcError as error:
        if known is not None and not known.skipped:
            return TableCoverage(cut.table, cut.lake_table, known, failed=error.message)
        why = error.message
    skipped = replace(known or empty, ran_at=table.began, skipped=why)
    if known is None or known.skipped != why:
        table.keep(known, skipped)
    return TableCoverage(cut.table, cut.lake_table, skipped)


def _subject(
    side: SourceSide, lake_tables: LakeTables, merged: Cursor, lake: LakeMerge, routed: RoutedTable, cut: TableCut
) -> tuple[Subject | str, OpenedTable | None]:
    if why := side.skipped(merged, lake, routed):
        return why, None
    if cut.as_of is not None:
        return WAITS_FOR_SNAPSHOT, None
    # Not the cut's snapshot: a repair after it makes none.
    opened = lake_tables.open(lake.name, cut.table, None, routed=routed.target.routed)
    subject = side.subject(lake, routed, lambda: opened.state)
    if isinstance(subject, Subject):
        return why_not_by_ranges(subject) or subject.as_in(opened.state), opened
    return subject, None
