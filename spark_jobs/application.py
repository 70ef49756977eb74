"""One Spark application merges all tables of a plan, several at once, each in one commit; then the cut is published.

A table that cannot be merged stops alone: the others go on, no cut is published, and the job fails at its end naming all
that failed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError
from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.lag import lag_of
from cdc_lib.merge.plan import Batch, tables_of
from cdc_lib.merge.routing import LakeMerge, lake_merges
from cdc_lib.merging import refuse_withdrawn
from cdc_lib.model.merge import Cut, MergePlan, TableCut
from cdc_lib.model.stopped import Stopped, StoppedTable
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import cut_of, last_cut, publish
from cdc_lib.store.stopped import keep_stopped
from spark_jobs.batches import load_plan
from spark_jobs.one_table import TableMerge
from spark_jobs.reselect import Origin, Say
from spark_jobs.session import spark_session
from spark_jobs.side_by_side import side_by_side
from spark_jobs.sql import full_name
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
        MergeConflict: the plan was withdrawn meanwhile; no cut is published.
    """
    batches = load_plan(store, plan)
    if not tables_of(batches):
        before = last_cut(store, config.source)
        tables = [replace(cut, changes=0) for cut in before.tables] if before is not None else []
        return _published(store, make_cut(plan, batches, tables, before, datetime.now(UTC)), plan)
    rows = sum(file.rows for batch in batches for file in batch.manifest.files)
    with spark_session(config, rows) as spark:
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
    stopped: list[StoppedTable] = []
    try:
        merged = merge_all(spark, job, lakes, say, stopped)
    finally:
        keep_stopped(store, Stopped(config.source, plan.merge_id, datetime.now(UTC), tuple(stopped)))
    before = last_cut(store, config.source)
    touched = {(cut.table, cut.lake_table) for cut in merged}
    untouched = [cut for cut in before.tables if (cut.table, cut.lake_table) not in touched] if before else []
    standing = job.standing(spark, untouched)
    return _published(store, make_cut(plan, batches, (*merged, *standing), before, datetime.now(UTC)), plan)


def _published(store: ObjectStore, cut: Cut, plan: MergePlan) -> Cut:
    """Publish a cut, unless its plan was withdrawn meanwhile; return the one that stands."""
    stands = cut_of(store, plan.source, plan.merge_id)
    if stands is not None:
        return stands
    refuse_withdrawn(ObjectCursorStore(store), plan)
    return publish(store, cut)


def merge_all(
    spark: SparkSession,
    job: TableMerge,
    lakes: Sequence[LakeMerge],
    say: Say,
    stopped: list[StoppedTable] | None = None,
) -> list[TableCut]:
    """Merge lake tables side by side; returns how they stand afterwards.

    Args:
        spark: a session.
        job: what all tables have in common.
        lakes: the tables.
        say: takes one line for each table.
        stopped: takes those that could not be merged, for reasons that do not pass.

    Raises:
        MergeError: or another error of a table; all failures stand in its text.
    """

    def work(session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        began = time.monotonic()
        try:
            cuts = job.run(session, lake)
        except CdcError as error:
            if stopped is not None and not error.retryable:
                mend = error.hint.replace("ALTER TABLE ...", f"ALTER TABLE {full_name(lake.name)}")
                kind = type(error).__name__
                stopped.append(StoppedTable(tuple(lake.tables), str(lake.name), kind, error.message, mend))
            raise
        applied, took = sum(cut.changes for cut in cuts), time.monotonic() - began
        say(f"{', '.join(lake.tables)}: {applied} changes into {lake.name} in {took:.1f} s")
        return cuts

    hint = "The other tables are merged; the cut is published when these are as well."
    named = {_label(lake): lake for lake in lakes}
    merged = side_by_side(spark, job.config, named, work, say, done="merged", hint=hint)
    return [cut for cuts in merged for cut in cuts]


def _label(lake: LakeMerge) -> str:
    """Name a merge for people: by its source tables, and by the lake table where those do not say it."""
    tables = ", ".join(lake.tables)
    return f"{tables} into {lake.name}" if any(share.target.routed for share in lake.shares) else tables
