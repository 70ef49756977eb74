"""One Spark application merges all tables of a plan, several at once, each in one commit; then the cut is published.

A table that cannot be merged stops alone: the others go on, no cut is published, and the job fails at its end naming all
that failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeError
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.lag import lag_of
from cdc_lib.merge.plan import Batch, tables_of
from cdc_lib.merge.routing import LakeMerge, lake_merges
from cdc_lib.model.merge import Cut, MergePlan, TableCut
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut, publish
from spark_jobs.batches import load_plan
from spark_jobs.one_table import TableMerge
from spark_jobs.reselect import Origin, Say
from spark_jobs.session import spark_session, table_session
from spark_jobs.tables.iceberg import ensure_namespaces


def run(config: SourceConfig, plan: MergePlan, store: ObjectStore, origin: Origin | None = None) -> Cut:
    """Merge a plan and publish its cut; Spark is started only when a table has something to merge.

    Args:
        config: the source.
        plan: what to merge.
        store: where the batches lie.
        origin: the way to the source, for rows that are read back; None when none is.

    Raises:
        MergeError: or another error of a table; all failures stand in its text.
        StoreError: a manifest cannot be read.
    """
    batches = load_plan(store, plan)
    if not tables_of(batches):
        before = last_cut(store, config.source)
        tables = [replace(cut, changes=0) for cut in before.tables] if before is not None else []
        return publish(store, make_cut(plan, batches, tables, before, datetime.now(UTC)))
    with spark_session(config) as spark:
        return merge(spark, config, plan, store, batches=batches, origin=origin)


def merge(
    spark: SparkSession,
    config: SourceConfig,
    plan: MergePlan,
    store: ObjectStore,
    say: Say = print,
    *,
    batches: Sequence[Batch] | None = None,
    origin: Origin | None = None,
) -> Cut:
    """Merge a plan in a running Spark application.

    Args:
        spark: a session that :func:`spark_jobs.session.prepare` has seen.
        config: the source.
        plan: what to merge.
        store: where the batches lie.
        say: takes one line for each table.
        batches: those of the plan, where they have been read.
        origin: the way to the source; None when no rows are read back.
    """
    batches = load_plan(store, plan) if batches is None else batches
    lakes = lake_merges(config, tables_of(batches))
    job = TableMerge(config, store, plan, batches, origin, say, lag_of(batches, datetime.now(UTC)))
    ensure_namespaces(spark, {lake.name for lake in lakes})
    merged = _merge_all(spark, job, lakes, say)
    before = last_cut(store, config.source)
    touched = {(cut.table, cut.lake_table) for cut in merged}
    untouched = [cut for cut in before.tables if (cut.table, cut.lake_table) not in touched] if before else []
    standing = job.standing(spark, untouched)
    return publish(store, make_cut(plan, batches, (*merged, *standing), before, datetime.now(UTC)))


def _merge_all(spark: SparkSession, job: TableMerge, lakes: Sequence[LakeMerge], say: Say) -> list[TableCut]:
    """Merge the lake tables side by side; every one is tried before any failure is raised."""
    own = threading.local()

    def attempt(lake: LakeMerge) -> list[TableCut] | CdcError:
        if not hasattr(own, "session"):
            own.session = table_session(spark, job.config)
        began = time.monotonic()
        try:
            cuts = job.run(own.session, lake)
        except CdcError as error:
            say(f"{_label(lake)}: {type(error).__name__}: {error}")
            return error
        applied, took = sum(cut.changes for cut in cuts), time.monotonic() - began
        say(f"{', '.join(lake.tables)}: {applied} changes into {lake.name} in {took:.1f} s")
        return cuts

    pool = ThreadPoolExecutor(max_workers=min(job.config.merge.parallelism, len(lakes)))
    try:
        results = list(pool.map(attempt, lakes))
    finally:
        # All is done unless the job is told to end; then it must not wait for tables that have not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = {_label(lake): result for lake, result in zip(lakes, results, strict=True) if isinstance(result, CdcError)}
    if failed:
        raise _all_failures(failed, len(lakes))
    return [cut for result in results if not isinstance(result, CdcError) for cut in result]


def _label(lake: LakeMerge) -> str:
    """Name a merge for people: by its source tables, and by the lake table where those do not say it."""
    tables = ", ".join(lake.tables)
    return f"{tables} into {lake.name}" if any(share.target.routed for share in lake.shares) else tables


def _all_failures(failed: dict[str, CdcError], tables: int) -> CdcError:
    """Make one error of many; it can be tried again only when each of them can."""
    errors = list(failed.values())
    if len(errors) == 1:
        return errors[0]
    stuck = [error for error in errors if not error.retryable]
    kinds = {type(error) for error in stuck or errors}
    kind = kinds.pop() if len(kinds) == 1 else (MergeError if stuck else type(errors[0]))
    texts = "; ".join(f"{table}: {error}" for table, error in failed.items())
    return kind(
        f"{len(failed)} of {tables} tables could not be merged: {texts}",
        hint="The other tables are merged; the cut is published when these are as well.",
        tables=", ".join(failed),
    )
