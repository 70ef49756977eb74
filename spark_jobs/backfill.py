"""Merge archived batches again: ``python -m spark_jobs.backfill --config dags/sources/shop.yaml --since 2026-11-20T00:00:00Z``.

Neither cursor moves, and no cut is published: the lake cursor is already past these batches. A merge of the source may run
at the same time: if two commits to a table conflict, the later one starts again from the new table state.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.backfill.archive import BackfillArchive, period_of
from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.backfill.other_key import dropped_line, left_out_line, left_out_windows, refusal, refuse_kept_key
from cdc_lib.backfill.period import refuse_gaps
from cdc_lib.config.credentials import Credentials, take_handed
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, MergeConflict
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.answers import answers_for
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import StoredBatch, tables_of
from cdc_lib.merge.source_tables import KeysOf, SourceTables
from cdc_lib.merge.table_batches import by_table
from cdc_lib.model.backfill import COPY_SUFFIX, Backfill, BackfillReport, BackfillRequest
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.pace import counted, listed
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source
from cdc_lib.store import documents
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.objects.open import open_at
from spark_jobs.job import arguments_of, ended
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from spark_jobs.merging.job import MergeJob
from spark_jobs.merging.run import merge_all
from spark_jobs.merging.source_rows import Say
from spark_jobs.merging.table_merge import ATTEMPTS
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.session import spark_session, table_session

_SUFFIX = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True, slots=True)
class _BatchSelection:
    """Selects the batches of a table that have the lake table's primary key, and reports the others.

    Args:
        decide: decides what each table needs.
        archive: finds batches of the source.
        source: name of the source.
        request: the request.
        say: receives one line for each table.
        said: lines that were already reported.
    """

    decide: BackfillDecision
    archive: BackfillArchive
    source: str
    request: BackfillRequest
    say: Say
    said: set[str]

    def __call__(
        self, table: TableName, batches: Sequence[StoredBatch], marker: Marker, state: LakeTable | None, keys_of: KeysOf
    ) -> Sequence[StoredBatch]:
        """Return the batches to merge.

        Raises:
            IncompatibleSchema: rows to merge have different keys, or a key that the copy cannot have.
        """
        key = tuple(name.lower() for name in state.primary_key) if state is not None else None
        found = self.decide.under_one_key(batches, table, marker, key, keys_of)
        if found.others and self.request.into == "live" and self.archive.is_dropped(table):
            self._report(dropped_line(table, found))
            return ()
        if found.others:
            since = self.archive.one_key_since(table, batches, self.decide, keys_of)
            raise refusal(table, found, self.source, self.request, since)
        if self.request.into == "copy" and state is not None:
            refuse_kept_key(table, state, found.key)
        if found.windows:
            self._report(left_out_line(left_out_windows(table, found)))
        return found.batches

    def _report(self, line: str) -> None:
        if line not in self.said:
            self.said.add(line)
            self.say(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge again, and print one line for each table."""
    take_handed()  # the source is not queried; the log-in is removed from this process's environment
    parser = arguments_of("spark_jobs.backfill", "Merge archived batches again.")
    parser.add_argument("--since", help="first commit time, 2026-11-20T00:00:00Z; the oldest batch without")
    parser.add_argument("--until", help="first commit time that no longer counts; now without")
    parser.add_argument(
        "--into", choices=("live", "copy"), default="live", help="the lake tables, or tables beside them"
    )
    parser.add_argument("--copy-suffix", default=COPY_SUFFIX, help="after the names of the tables beside them")
    parser.add_argument("--batches", help="where batches were drained again, which count before the source's own")
    parser.add_argument("--report", help="file to leave in what was merged, as JSON")
    parser.add_argument("tables", nargs="*", help="patterns of tables; all without")
    return ended(parser, arguments, _merged)


def _merged(config: SourceConfig, options: argparse.Namespace) -> str:
    period, location = period_of(options.since, options.until), options.batches or ""
    request = BackfillRequest(period, tuple(options.tables), options.into, options.copy_suffix, location)
    source = Source.open(config, Credentials("", ""))
    if options.batches:
        source = replace(source, store=LayeredStore(open_at(config.store, options.batches), source.store))
    archive = BackfillArchive(source)
    if archive.found(request.period) is None:
        return f"nothing of {request.period} was ever merged"
    with spark_session(config, store=source.store) as spark:
        report = backfill(spark, config, source, request)
    if options.report:
        Path(options.report).write_bytes(documents.dump(report))
    return (
        f"{counted(len(report.tables), 'table')}, {counted(report.changes, 'change')} of {request.period} merged again"
    )


def backfill(
    spark: SparkSession, config: SourceConfig, source: Source, request: BackfillRequest, say: Say = say_line
) -> BackfillReport:
    """Merge in a running Spark application; retried when another commit moved the lake table.

    Raises:
        BatchesMissing: batches that are needed are no longer stored.
        MergeError: or another error of a table; its text lists all failures.
        ConfigError: the name of a copy, or of a table, is not valid.
    """
    retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
    report: BackfillReport = retry(_attempt, spark, config, source, request, say, set())
    return report


def _attempt(
    spark: SparkSession, config: SourceConfig, source: Source, request: BackfillRequest, say: Say, said: set[str]
) -> BackfillReport:
    archive = BackfillArchive(source)
    found = archive.found(request.period)
    if found is None:
        return BackfillReport(config.source, str(request.period))
    end = found.end if request.into == "copy" else found.lake
    tables = archive.chosen_tables(_tables(source, archive, found, end), list(request.tables))
    if request.into == "live":
        tables = _without_held(found, tables, say, said)
    lakes = _lakes(config, tables, request)
    LAKE_FORMAT.prove(spark)
    for error in LAKE_FORMAT.ensure_namespaces(spark, {lake.name for lake in lakes}).values():
        raise error
    reached = [marker.merged_to for lake in lakes for marker in _markers(spark, config, lake) if marker.merged_to]
    low, high = min([found.begin, *reached]), max([end, *reached])
    is_copy = request.into == "copy"
    # An existing table needs batches before the period; removed ones were merged before they were removed.
    refuse_gaps(found.between(low, high), low if is_copy else found.begin, high, config.source)
    low = low if is_copy else max(low, min([found.begin, *(window.start for window in found.windows[:1])]))
    plan = archive.plan(found, low, high)
    batches = load_plan(source.store, plan)
    decide = BackfillDecision(found.begin, end, (low, high), is_copy=is_copy, from_start=found.from_start)
    watch = None if is_copy else ForeignChangeDetector(config.source, source.store, plan, batches)
    counts = _BatchSelection(decide, archive, config.source, request, say, said)
    sources = SourceTables(config, source.store, plan, by_table(batches), answers_for(config, source.store), counts)
    job = MergeJob(sources, None, say, None, decide, waits=False, watch=watch)
    say(
        f"{request.period}: {listed((found.chosen, 'window'), (len(found.snapshots), 'snapshot'))}; {counted(len(batches), 'batch')} to read"
    )
    return BackfillReport(
        source=config.source,
        period=str(request.period),
        windows=found.chosen,
        snapshots=len(found.snapshots),
        batches=len(batches),
        suffix=request.suffix if is_copy else "",
        tables=tuple(merge_all(spark, job, lakes, say)),
    )


def _tables(source: Source, archive: BackfillArchive, found: Backfill, end: Point) -> list[str]:
    """Return the tables that the batches of the period contain."""
    return list(tables_of(load_plan(source.store, archive.plan(found, found.begin, end))))


def _without_held(found: Backfill, tables: Sequence[str], say: Say, said: set[str]) -> list[str]:
    """Return the tables that can be merged now, and say which cannot."""
    possible = found.of_lake(tables)
    for table in tables:
        line = f"{table}: left out, because its snapshot is being read; its changes of this time come with it"
        if table not in possible and line not in said:
            said.add(line)
            say(line)
    return possible


def _lakes(config: SourceConfig, tables: Sequence[str], request: BackfillRequest) -> tuple[LakeMerge, ...]:
    """Return the lake tables to write, or their copies.

    Raises:
        ConfigError: a copy would have the name of a lake table, or an invalid name.
    """
    lakes = lake_merges(config, tables)
    if request.into == "live":
        return lakes
    if not _SUFFIX.fullmatch(request.suffix):
        raise ConfigError(f"not a suffix of a table's name: {request.suffix!r}", hint="1 to 60 letters, digits and _.")
    copies = tuple(replace(one, name=replace(one.name, name=one.name.name + request.suffix)) for one in lakes)
    if taken := {one.name for one in copies} & {one.name for one in lakes}:
        raise ConfigError(
            f"{min(map(str, taken))} is a lake table itself", hint="Use another --copy-suffix.", source=config.source
        )
    return copies


def _markers(spark: SparkSession, config: SourceConfig, lake: LakeMerge) -> list[Marker]:
    """Return the markers of a lake table; none if it is missing."""
    state = LAKE_FORMAT.table(table_session(spark, config), lake.name, config.source, lake.is_routed).load()
    return list(state.markers.values()) if state is not None else []


if __name__ == "__main__":
    sys.exit(main())
