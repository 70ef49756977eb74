"""Merge archived batches again: ``python -m spark_jobs.backfill --config dags/sources/shop.yaml --from 2026-11-20T00:00:00Z``.

Neither cursor moves, and no cut is published: what is merged are batches that the lake cursor has behind it. A merge of the
source may run meanwhile: of two commits to a table one comes first, and the other begins again where it then stands.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.backfilling import Backfilling, period_of
from cdc_lib.config.credentials import Credentials, take_handed
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, MergeConflict
from cdc_lib.merge.again import Again
from cdc_lib.merge.period import refuse_gaps
from cdc_lib.merge.plan import tables_of
from cdc_lib.merge.routing import LakeMerge, lake_merges
from cdc_lib.model.backfill import SIDE_SUFFIX, Backfill, Into, Period
from cdc_lib.model.lake import Marker, Point
from cdc_lib.model.merge import TableCut
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.layered import LayeredStore
from cdc_lib.store.open import open_at
from spark_jobs.application import merge_all
from spark_jobs.batches import load_plan
from spark_jobs.entry import arguments_of, ended
from spark_jobs.one_table import ATTEMPTS, TableMerge
from spark_jobs.reselect import Say
from spark_jobs.session import spark_session, table_session
from spark_jobs.tables.iceberg import IcebergTable, ensure_namespaces

_SUFFIX = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a backfill was asked for.

    Args:
        period: commit times.
        tables: patterns; all tables without.
        into: the lake tables, or tables beside them.
        suffix: of the names of the tables beside them.
    """

    period: Period
    tables: tuple[str, ...] = ()
    into: Into = "live"
    suffix: str = SIDE_SUFFIX


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge again, and print one line for each table."""
    take_handed()  # nothing is asked of the source; no log-in is left in this process's variables
    parser = arguments_of("spark_jobs.backfill", "Merge archived batches again.")
    parser.add_argument(
        "--from", dest="since", help="first commit time, 2026-11-20T00:00:00Z; the oldest batch without"
    )
    parser.add_argument("--to", dest="until", help="first commit time that no longer counts; now without")
    parser.add_argument(
        "--into", choices=("live", "side"), default="live", help="the lake tables, or tables beside them"
    )
    parser.add_argument("--side-suffix", default=SIDE_SUFFIX, help="behind the names of the tables beside them")
    parser.add_argument("--batches", help="where batches were drained again, which count before the source's own")
    parser.add_argument("tables", nargs="*", help="patterns of tables; all without")
    return ended(parser, arguments, _merged)


def _merged(config: SourceConfig, options: argparse.Namespace) -> str:
    wanted = Wanted(period_of(options.since, options.until), tuple(options.tables), options.into, options.side_suffix)
    pipeline = Pipeline.open(config, Credentials("", ""))
    if options.batches:
        pipeline = replace(pipeline, store=LayeredStore(open_at(config.store, options.batches), pipeline.store))
    backfilling = Backfilling(config, pipeline.store, pipeline.cursors)
    if backfilling.found(wanted.period) is None:
        return f"nothing of {wanted.period} was ever merged"
    with spark_session(config) as spark:
        cuts = backfill(spark, config, pipeline, wanted)
    return f"{len(cuts)} tables, {sum(cut.changes for cut in cuts)} changes of {wanted.period} merged again"


def backfill(
    spark: SparkSession, config: SourceConfig, pipeline: Pipeline, wanted: Wanted, say: Say = print
) -> list[TableCut]:
    """Merge in a running Spark application, and begin anew when the lake moved on meanwhile.

    Raises:
        BatchesGone: batches that are needed are no longer stored.
        MergeError: or another error of a table; all failures stand in its text.
        ConfigError: the name of a side table, or of a table, is none.
    """
    again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
    found: list[TableCut] = again(_attempt, spark, config, pipeline, wanted, say)
    return found


def _attempt(spark: SparkSession, config: SourceConfig, pipeline: Pipeline, wanted: Wanted, say: Say) -> list[TableCut]:
    backfilling = Backfilling(config, pipeline.store, pipeline.cursors)
    found = backfilling.found(wanted.period)
    if found is None:
        return []
    end = found.end if wanted.into == "side" else found.lake
    tables = backfilling.chosen_tables(_tables(pipeline, backfilling, found, end), list(wanted.tables))
    lakes = _lakes(config, tables, wanted)
    ensure_namespaces(spark, {lake.name for lake in lakes})
    reached = [marker.merged_to for lake in lakes for marker in _markers(spark, config, lake) if marker.merged_to]
    low, high = min([found.begin, *reached]), max([end, *reached])
    side = wanted.into == "side"
    # What lies before the period is needed where a table stands there; the lake had all of it before it was removed.
    refuse_gaps(found.between(low, high), low if side else found.begin, high, config.source)
    low = low if side else max(low, min([found.begin, *(window.start for window in found.windows[:1])]))
    plan = backfilling.plan(found, low, high)
    batches = load_plan(pipeline.store, plan)
    decide = Again(found.begin, end, (low, high), side=side, whole=found.whole)
    job = TableMerge(config, pipeline.store, plan, batches, None, say, None, decide, waits=False)
    say(f"{wanted.period}: {found.chosen} windows, {len(found.snapshots)} snapshots, {len(batches)} batches to read")
    return merge_all(spark, job, lakes, say)


def _tables(pipeline: Pipeline, backfilling: Backfilling, found: Backfill, end: Point) -> list[str]:
    """Return the tables that the batches of the period have something for."""
    return list(tables_of(load_plan(pipeline.store, backfilling.plan(found, found.begin, end))))


def _lakes(config: SourceConfig, tables: Sequence[str], wanted: Wanted) -> tuple[LakeMerge, ...]:
    """Return the lake tables to write, or those beside them.

    Raises:
        ConfigError: a table beside one would have the name of a lake table, or none that a table can have.
    """
    lakes = lake_merges(config, tables)
    if wanted.into == "live":
        return lakes
    if not _SUFFIX.fullmatch(wanted.suffix):
        raise ConfigError(f"not a suffix of a table's name: {wanted.suffix!r}", hint="1 to 60 letters, digits and _.")
    found = tuple(replace(one, name=replace(one.name, name=one.name.name + wanted.suffix)) for one in lakes)
    if taken := {one.name for one in found} & {one.name for one in lakes}:
        raise ConfigError(
            f"{min(map(str, taken))} is a lake table itself", hint="Take another --side-suffix.", source=config.source
        )
    return found


def _markers(spark: SparkSession, config: SourceConfig, lake: LakeMerge) -> list[Marker]:
    """Return what a lake table holds of its source tables; nothing where it is not there."""
    routed = {share.table: share.target.routed for share in lake.shares}
    stands = IcebergTable(table_session(spark, config), lake.name, config.source, routed).load()
    return list(stands.markers.values()) if stands is not None else []


if __name__ == "__main__":
    sys.exit(main())
