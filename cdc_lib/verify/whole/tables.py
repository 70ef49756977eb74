"""Compares the tables of a source with the lake and stores the report.

    checksums of key ranges, both sides ─▶ hash buckets of unequal ranges ─▶ rows ─▶ looks ─▶ report

The source is read in one read-only session, each lake table as of its current snapshot when its comparison begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lib.config.patterns import matches, problem
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import CdcError, ConfigError, CursorMoved, StoreError, StoreUnavailable, TableUnreadable
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import reading
from cdc_lib.source import Source
from cdc_lib.store.verified import keep
from cdc_lib.verify.comparability import Key, Subject
from cdc_lib.verify.lake import LakeSums, Repairer, RepairRequest
from cdc_lib.verify.source_side import SourceSide, source_side
from cdc_lib.verify.whole.table import Comparison

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Verifier:
    """Compares the tables of one source.

    Args:
        repairer: repairs wrong rows; None for no repair.
        needs_spark: gets each table that ``lake`` cannot read, with the error, and the table is not in the report; None raises the error.
    """

    source: Source
    lake: LakeSums
    repairer: Repairer | None = None
    sleep: Callable[[float], None] = time.sleep
    needs_spark: Callable[[TableName, CdcError], None] | None = None

    def run(self, patterns: Sequence[str], settings: VerifyConfig, say: Say) -> Report:
        """Compare tables one after another and store the report.

        Args:
            patterns: of tables, as in the source file; ``verify.tables`` if empty.
            settings: chunk size and waiting times.
            say: receives a line for each table.

        Raises:
            ConfigError: a pattern names no captured table.
            CursorMoved: there is nothing in the lake yet, or the source failed over during the comparison.
            ServerChanged: another server answers.
            SourceError: the source cannot be read.
            MergeError: the lake cannot be read.
        """
        began = datetime.now(UTC)
        drain, lake = self.source.required(DRAIN), self.source.required(LAKE)
        with source_side(self.source, drain) as side:
            tables = self.source.config.tables.select(side.schemas.tables())
            chosen = _chosen(settings, patterns, tables)
            reports = []
            for one in self._compared(side, tables, chosen, settings):
                say(_line(one))
                reports.append(one)
        gtids = lake.gtid_set if lake.gtids_known else ""
        report = Report(
            self.source.name, lake.epoch, lake.position, gtids, began, datetime.now(UTC), tuple(reports)
        )  # fmt: skip
        keep(self.source.store, report)
        return report

    def _compared(
        self, side: SourceSide, tables: Sequence[tuple[str, str]], chosen: Sequence[TableName], settings: VerifyConfig
    ) -> Iterator[TableReport]:
        for lake in lake_merges(self.source.config, [TableName(*table) for table in tables]):
            for routed in lake.routed_tables:
                if routed.table not in chosen:
                    continue
                try:
                    yield self._report(side, lake, routed, settings)
                except (StoreError, ConfigError) as error:
                    if self.needs_spark is None or isinstance(error, StoreUnavailable):
                        raise
                    self.needs_spark(routed.table, error)

    def _report(self, side: SourceSide, lake: LakeMerge, routed: RoutedTable, settings: VerifyConfig) -> TableReport:
        """Compare one table, or report why it cannot be compared."""
        is_routed = routed.target.routed

        def state() -> LakeTable | None:
            return self.lake.load(lake.name, routed.table, routed=is_routed)

        def state_of(subject: Subject) -> tuple[LakeTable | None, Point, Position]:
            return self._state(subject, side.drain, routed=is_routed)

        try:
            subject = side.skipped(self.source.required(LAKE), lake, routed) or side.subject(lake, routed, state)
            if isinstance(subject, Subject):
                comparison = Comparison(side, self.lake, state_of, settings, sleep=self.sleep)
                return comparison.compare(subject, self._repair(side, routed, subject))
        except TableUnreadable as error:
            subject = error.message
        return TableReport(routed.table, str(lake.name), skipped=subject)

    def _repair(
        self, side: SourceSide, routed: RoutedTable, subject: Subject
    ) -> Callable[[list[Key], Point], str] | None:
        """Return the function that repairs rows of one table; None for no repair."""
        repairer = self.repairer
        if repairer is None:
            return None

        def repair(keys: list[Key], stop: Point) -> str:
            schema = side.schemas.schema(routed.database, routed.name)
            if schema is None:
                return "the table is no longer at the source"
            again = f"cdc snapshot {self.source.name} {routed.table.in_shell} reads it again"
            if subject.how == "copies":
                return f"the table has no key: {again}"
            if subject.folded:
                return f"every change is kept (append): {again}"
            stored = shape_of(self.source.config, self.source.credentials).of(subject.values.applied(schema)).schema
            return repairer.repair(RepairRequest(subject, routed.target, stored, keys, stop))

        return repair

    def _state(self, subject: Subject, drain: Cursor, *, routed: bool) -> tuple[LakeTable | None, Point, Position]:
        """Load a lake table, and return the point up to which it has all changes: at least the lake cursor's."""
        cursor = self.source.required(LAKE)
        if cursor.epoch > drain.epoch:
            raise CursorMoved(
                f"the lake continued to epoch {cursor.epoch} while rows of epoch {drain.epoch} were compared",
                hint="Another server took over. Compare again.",
                source=self.source.name,
            )
        lake_table = self.lake.load(subject.lake, subject.schema.name, routed=routed)
        at = Point.at(cursor.epoch, cursor.position)
        if lake_table is not None and lake_table.marker.merged_to is not None:
            at = max(at, lake_table.marker.merged_to)
        return lake_table, at, cursor.position


def rows_to_compare(source: Source, patterns: Sequence[str], settings: VerifyConfig) -> int:
    """Return the estimated number of rows in the tables to compare.

    Raises:
        CursorMoved: there is nothing in the lake yet.
        SourceError: the source cannot be read.
    """
    config = source.at_cursor(source.required(DRAIN)).config
    chosen = replace_tables(settings, patterns) if patterns else settings
    with reading(config.server, source.credentials) as connection:
        estimated = InformationSchema(connection).estimated_rows()
    return sum(rows for table, rows in estimated.items() if config.tables.captures(*table) and chosen.names(*table))


def _chosen(settings: VerifyConfig, patterns: Sequence[str], tables: Sequence[tuple[str, str]]) -> list[TableName]:
    """Return the names of the tables to compare.

    Raises:
        ConfigError: a pattern is not valid, or names no captured table.
    """
    for pattern in patterns:
        wrong = problem(pattern)
        if wrong or not any(matches(pattern, *table) for table in tables):
            raise ConfigError(wrong or f"no captured table is named {pattern}", hint="cdc doctor counts them.")
    chosen = settings if not patterns else replace_tables(settings, patterns)
    return [TableName(*table) for table in tables if chosen.names(*table)]


def replace_tables(settings: VerifyConfig, patterns: Sequence[str]) -> VerifyConfig:
    """Return the settings for other tables."""
    return settings.model_copy(update={"tables": tuple(patterns)})


def _line(one: TableReport) -> str:
    if one.skipped:
        return f"{one.table}: not compared: {one.skipped}"
    kept = f"; {one.kept}" if one.kept else ""
    counts = (
        (one.missing, "missing"),
        (one.extra, "extra"),
        (one.different, "different"),
        (one.in_flight, "in flight"),
    )
    differences = ", ".join(f"{count} {what}" for count, what in counts if count) or "no difference"
    more = f", about {one.unexamined} more not looked at" if one.unexamined else ""
    repaired = f", {one.repaired} repaired" if one.repaired else f", not repaired: {one.refused}" if one.refused else ""
    return f"{one.table}: {counted(one.source_rows, 'row')}, {differences}{more}{repaired}{kept} ({one.seconds:.1f} s)"
