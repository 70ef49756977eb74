"""One Spark application merges all tables of a plan, several at once, each in one commit; then the cut is published.

A table that cannot be merged stops alone: the others go on, no cut is published, and the job fails at its end naming all
that failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeError
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.plan import tables_of
from cdc_lib.model.merge import Cut, MergePlan, TableCut
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut, publish
from spark_jobs.batches import load_plan
from spark_jobs.one_table import TableMerge, lake_name
from spark_jobs.session import spark_session, table_session
from spark_jobs.tables.iceberg import ensure_namespaces

Say = Callable[[str], None]


def run(config: SourceConfig, plan: MergePlan, store: ObjectStore) -> Cut:
    """Merge a plan and publish its cut; Spark is started only when a table has something to merge.

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
        return merge(spark, config, plan, store)


def merge(spark: SparkSession, config: SourceConfig, plan: MergePlan, store: ObjectStore, say: Say = print) -> Cut:
    """Merge a plan in a running Spark application.

    Args:
        spark: a session that :func:`spark_jobs.session.prepare` has seen.
        config: the source.
        plan: what to merge.
        store: where the batches lie.
        say: takes one line for each table.
    """
    batches = load_plan(store, plan)
    tables = tables_of(batches)
    job = TableMerge(config, store, plan, batches)
    ensure_namespaces(spark, {lake_name(config, table) for table in tables})
    merged = _merge_all(spark, job, tables, say)
    before = last_cut(store, config.source)
    untouched = [cut for cut in before.tables if cut.table not in tables] if before is not None else []
    standing = [cut for old in untouched if (cut := job.standing(spark, old)) is not None]
    return publish(store, make_cut(plan, batches, (*merged, *standing), before, datetime.now(UTC)))


def _merge_all(spark: SparkSession, job: TableMerge, tables: Sequence[str], say: Say) -> list[TableCut]:
    """Merge the tables side by side; every one is tried before any failure is raised."""
    own = threading.local()

    def attempt(table: str) -> TableCut | CdcError:
        if not hasattr(own, "session"):
            own.session = table_session(spark, job.config)
        began = time.monotonic()
        try:
            cut = job.run(own.session, table)
        except CdcError as error:
            say(f"{table}: {type(error).__name__}: {error}")
            return error
        say(f"{table}: {cut.changes} changes into {cut.lake_table} in {time.monotonic() - began:.1f} s")
        return cut

    pool = ThreadPoolExecutor(max_workers=min(job.config.merge.parallelism, len(tables)))
    try:
        results = list(pool.map(attempt, tables))
    finally:
        # All is done unless the job is told to end; then it must not wait for tables that have not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = {table: result for table, result in zip(tables, results, strict=True) if isinstance(result, CdcError)}
    if failed:
        raise _all_failures(failed, len(tables))
    return [result for result in results if isinstance(result, TableCut)]


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
