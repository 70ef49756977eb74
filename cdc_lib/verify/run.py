"""Comparing tables of a source with the lake: which, up to where, and what is kept of it.

    checksums of key ranges, both sides ─▶ shares of unequal ranges ─▶ rows ─▶ looks ─▶ report

The source is read in one session that only reads; the lake as of the snapshots that stand when each table's turn comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.patterns import matches, problem
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import ConfigError, CursorMoved, ServerChanged, TableUnreadable
from cdc_lib.lake.routing import LakeMerge, RoutedTable, lake_merges
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import reading
from cdc_lib.mysql.server_facts import ServerFacts, read_facts
from cdc_lib.plan.start import address_of
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.cursors import begun
from cdc_lib.store.verified import keep
from cdc_lib.verify.comparability import Subject, subject_of
from cdc_lib.verify.lake import LakeSums, Repairer, Wrong
from cdc_lib.verify.table import Comparison

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Verifying:
    """Compares the tables of one source.

    Args:
        config: of the source.
        credentials: log-in of the source.
        store: where what was found is kept.
        cursors: where cursors lie.
        lake: the lake.
        repairer: repairs rows that are wrong; None where nothing is changed.
        sleep: how it waits.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    cursors: CursorStore
    lake: LakeSums
    repairer: Repairer | None = None
    sleep: Callable[[float], None] = time.sleep

    def run(self, patterns: Sequence[str], settings: VerifyConfig, say: Say) -> Report:
        """Compare tables one after another and keep what was found.

        Args:
            patterns: of tables, as in the source file; those of ``verify.tables`` when there are none.
            settings: how much is read at once, and how long is waited.
            say: takes a line for each table.

        Raises:
            ConfigError: a pattern names no captured table.
            CursorMoved: there is nothing in the lake yet, or another server took over meanwhile.
            ServerChanged: another server answers.
            SourceError: the source cannot be read.
            MergeError: the lake cannot be read.
        """
        began = datetime.now(UTC)
        drain, lake = self._cursor(DRAIN), self._cursor(LAKE)
        config = self.config.at(*address_of(self.config, drain))
        with reading(config.server, self.credentials) as connection:
            facts = read_facts(connection, config.server)
            if not facts.identity.is_same_server(drain.identity):
                raise ServerChanged(
                    f"the cursor belongs to {drain.identity}, but {facts.identity} answers",
                    hint="Run the source first: the next plan goes over, or says why it cannot.",
                    source=config.source,
                )
            tables = [t for t in InformationSchema(connection).tables() if config.tables.captures(*t)]
            wanted = _wanted(settings, patterns, tables)
            found = []
            for one in self._compared(connection, facts, drain, tables, wanted, settings):
                say(_line(one))
                found.append(one)
        gtids = lake.gtid_set if lake.gtids_known else ""
        report = Report(
            config.source, lake.epoch, lake.position, gtids, began, datetime.now(UTC), tuple(found)
        )  # fmt: skip
        keep(self.store, report)
        return report

    def _cursor(self, consumer: str) -> Cursor:
        return begun(self.cursors, self.config.source, consumer)

    def _compared(
        self,
        connection: Session,
        facts: ServerFacts,
        drain: Cursor,
        tables: Sequence[tuple[str, str]],
        wanted: Sequence[str],
        settings: VerifyConfig,
    ) -> Iterator[TableReport]:
        reader = InformationSchema(connection)
        for lake in lake_merges(self.config, [TableName(*table) for table in tables]):
            for share in lake.shares:
                if share.table not in wanted:
                    continue

                def state(one: Subject, routed: bool = share.target.routed) -> tuple[LakeTable | None, Point, Position]:
                    return self._state(one, drain, routed=routed)

                one = Comparison(connection, facts, drain.epoch, self.lake, state, settings, sleep=self.sleep)
                yield self._report(one, reader, drain, lake, share)

    def _report(
        self, one: Comparison, reader: InformationSchema, drain: Cursor, lake: LakeMerge, share: RoutedTable
    ) -> TableReport:
        """Compare one table, or say why that cannot be done."""
        try:
            subject = self._skipped(drain, lake, share) or self._subject(reader, lake, share)
            if isinstance(subject, Subject):
                return one.compare(subject, self._repair(reader, share, subject))
        except TableUnreadable as error:
            subject = error.message
        return TableReport(share.table, str(lake.name), skipped=subject)

    def _repair(
        self, reader: InformationSchema, share: RoutedTable, subject: Subject
    ) -> Callable[[list[tuple[str, ...]], Point], str] | None:
        """Return what repairs rows of one table."""
        repairer = self.repairer
        if repairer is None:
            return None

        def repair(keys: list[tuple[str, ...]], stop: Point) -> str:
            schema = reader.schema(share.database, share.name)
            if schema is None:
                return "the table is no longer at the source"
            if subject.how == "copies":
                return f"the table has no key: cdc snapshot {self.config.source} {share.table.in_shell} takes it again"
            if subject.folded:
                return f"every change is kept (append): cdc snapshot {self.config.source} {share.table.in_shell} reads it again"
            stored = shape_of(self.config, self.credentials).of(self.config.values.applied(schema)).schema
            return repairer.repair(Wrong(subject, share.target, stored, keys, stop))

        return repair

    def _subject(self, reader: InformationSchema, lake: LakeMerge, share: RoutedTable) -> Subject | str:
        schema = reader.schema(share.database, share.name)
        if schema is None:
            return "it was dropped at the source"
        schema = self.config.values.applied(schema)
        projection = shape_of(self.config, self.credentials).of(schema)
        found = self.lake.load(lake.name, share.table, routed=share.target.routed)
        constants = share.constants(self.config.source)
        return subject_of(schema, projection, share.target, lake.name, found, constants, self.config.values)

    def _skipped(self, drain: Cursor, lake: LakeMerge, share: RoutedTable) -> str:
        """Say why a table is not compared although it could be; empty when it is."""
        merged = self._cursor(LAKE)
        if any(one.table == share.table for one in drain.lagging_in(merged)):
            return "it is quarantined, or released and not in the lake again yet; see cdc status"
        if len(lake.shares) > 1 and not share.constants(self.config.source):
            return "it shares its lake table with others, and no column there shows the source table of a row"
        read = any(task.complete for task in merged.snapshots if task.name == share.table)
        if self.config.start == "snapshot" and not read:
            return "its snapshot is not in the lake whole yet"
        if self.config.start not in ("snapshot", "earliest") and not read:
            return "the source began without a snapshot: rows that did not change since are not in the lake"
        return ""

    def _state(self, subject: Subject, drain: Cursor, *, routed: bool) -> tuple[LakeTable | None, Point, Position]:
        """Load a lake table, and tell up to where it has all changes: at least to the cursor, which is read before."""
        cursor = self._cursor(LAKE)
        if cursor.epoch > drain.epoch:
            raise CursorMoved(
                f"the lake continued to epoch {cursor.epoch} while rows of epoch {drain.epoch} were compared",
                hint="Another server took over. Compare again.",
                source=self.config.source,
            )
        found = self.lake.load(subject.lake, subject.schema.name, routed=routed)
        at = Point.at(cursor.epoch, cursor.position)
        if found is not None and found.marker.merged_to is not None:
            at = max(at, found.marker.merged_to)
        return found, at, cursor.position


def rows_to_compare(
    config: SourceConfig,
    credentials: Credentials,
    cursors: CursorStore,
    patterns: Sequence[str],
    settings: VerifyConfig,
) -> int:
    """Return about how many rows the source has in the tables that would be compared.

    Args:
        config: of the source.
        credentials: log-in of the source.
        cursors: where cursors lie.
        patterns: of tables, as for :meth:`Verifying.run`.
        settings: with the tables that are meant without patterns.

    Raises:
        CursorMoved: there is nothing in the lake yet.
        SourceError: the source cannot be read.
    """
    config = config.at(*address_of(config, begun(cursors, config.source, DRAIN)))
    chosen = replace_tables(settings, patterns) if patterns else settings
    with reading(config.server, credentials) as connection:
        estimated = InformationSchema(connection).estimated_rows()
    return sum(rows for table, rows in estimated.items() if config.tables.captures(*table) and chosen.names(*table))


def _wanted(settings: VerifyConfig, patterns: Sequence[str], tables: Sequence[tuple[str, str]]) -> list[TableName]:
    """Return the names of the tables that are to be compared.

    Raises:
        ConfigError: a pattern is none, or names no captured table.
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
    counts = (
        (one.missing, "missing"),
        (one.extra, "extra"),
        (one.different, "different"),
        (one.in_flight, "in flight"),
    )
    said = ", ".join(f"{count} {what}" for count, what in counts if count) or "no difference"
    more = f", about {one.unexamined} more not looked at" if one.unexamined else ""
    mended = f", {one.repaired} repaired" if one.repaired else f", not repaired: {one.refused}" if one.refused else ""
    return f"{one.table}: {one.source_rows} rows, {said}{more}{mended} ({one.seconds:.1f} s)"
