"""Merges all tables of a plan in one Spark application, several at once, each in one commit, and publishes the cut.

If a table cannot be merged, the others continue. With ``on_error: quarantine`` the merge is planned again without it, and its cut is
published; else no cut is published, and the job fails at its end with all failed tables.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeConflict, MergeError
from cdc_lib.lake.routing import LakeMerge, colliding, lake_merges
from cdc_lib.merge.answers import answers_for
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import StoredBatch, tables_of
from cdc_lib.merge.publish import publish_cut
from cdc_lib.merge.source_tables import SourceTables
from cdc_lib.merge.table_batches import by_table
from cdc_lib.merge.table_faults import FailedTable
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut
from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.policy import lag_of
from cdc_lib.store.cuts import last_cut, last_cut_by, named_snapshots
from spark_jobs.disks import disks_of
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.merging.comments import carry_comments, comments_of
from spark_jobs.merging.cut_entries import UnchangedTables
from spark_jobs.merging.faulty_tables import FaultyTables, report_foreign_commits
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from spark_jobs.merging.job import MergeJob, Now, utc_now
from spark_jobs.merging.source_rows import Origin, Say
from spark_jobs.merging.table_merge import merge_table
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.parallel_tables import in_parallel
from spark_jobs.runtime.session import spark_session
from spark_jobs.sql import full_name

log = logging.getLogger(__name__)

PLANS = 5
"""Most plans of one job: a plan is replaced when tables are left out of it, or by another process."""

Changed = Counter[tuple[TableName, str]]
"""Number of changes by source table and lake table."""

Again = Callable[[], MergePlan | None]
"""Plans the merge again; None if nothing is left to merge."""


def run(
    config: SourceConfig,
    plan: MergePlan,
    store: ObjectStore,
    origin: Origin | None = None,
    again: Again | None = None,
    *,
    now: Now = utc_now,
) -> Cut | None:
    """Merge a plan and publish its cut; Spark is started only if a table has something to merge.

    Args:
        config: the source.
        plan: the merge plan.
        store: holds the batches.
        origin: opens the source to re-select rows; None for no re-selection.
        again: plans again when the plan was replaced, perhaps by this merge itself; None to fail then.
        now: returns the time (UTC).

    Returns:
        The cut; None if nothing was left to merge when it was planned again.

    Raises:
        MergeError: or another error of a table; its text lists all failures.
        StoreError: a manifest cannot be read.
        MergeConflict: the plan was withdrawn during the merge; no cut is published.
    """
    changed: Changed = Counter()
    with ExitStack() as sessions:
        spark: SparkSession | None = None
        for left in reversed(range(PLANS)):
            began = time.monotonic()
            batches = load_plan(store, plan)
            try:
                if spark is None and not needs_spark(config, store, batches, plan.last_merge):
                    before = last_cut(store, config.source, plan.last_merge)
                    tables = [replace(cut, changes=0) for cut in before.tables] if before is not None else []
                    return publish_cut(store, plan, batches, tables, before, now(), time.monotonic() - began)
                if spark is None:
                    rows = sum(file.rows for batch in batches for file in batch.manifest.files)
                    spark = sessions.enter_context(spark_session(config, rows, store))
                return merge(spark, config, plan, store, batches=batches, origin=origin, now=now, changed=changed)
            except MergeConflict as error:
                planned = again() if again is not None and left else plan
                if planned is None:
                    say_line(f"{error}\nnothing is left to merge")
                    return None
                if planned.merge_id == plan.merge_id:
                    raise
                say_line(f"{error}\nplanned again: {planned.merge_id}")
                plan = planned
    raise AssertionError(plan.merge_id)


def needs_spark(config: SourceConfig, store: ObjectStore, batches: Sequence[StoredBatch], last_merge: str = "") -> bool:
    """Whether a table has something to merge: rows, statements, or comments of a table that the lake has."""
    if tables_of(batches):
        return True
    commented = {one.table for one in comments_of(config, batches)}
    before = last_cut(store, config.source, last_merge) if commented else None
    return before is not None and any(cut.table in commented for cut in before.tables)


def merge(
    spark: SparkSession,
    config: SourceConfig,
    plan: MergePlan,
    store: ObjectStore,
    say: Say = say_line,
    *,
    batches: Sequence[StoredBatch] | None = None,
    origin: Origin | None = None,
    now: Now = utc_now,
    changed: Changed | None = None,
) -> Cut:
    """Merge a plan in a running Spark application.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.connect_catalog` has seen.
        config: the source.
        plan: the merge plan.
        store: holds the batches.
        say: receives one line for each table.
        batches: those of the plan, if already read.
        origin: opens the source; None for no re-selection.
        now: returns the time (UTC).
        changed: the changes of each table in earlier plans of this job, which are added to.
    """
    began = time.monotonic()
    LAKE_FORMAT.prove(spark)
    changed = Counter() if changed is None else changed
    batches = load_plan(store, plan) if batches is None else batches
    before = last_cut(store, config.source, plan.last_merge)
    lakes, refused = _lakes_of(config, plan, tables_of(batches), before)
    known = last_cut_by(store, config.source, plan.epoch, plan.start, plan.last_merge)
    watch = ForeignChangeDetector(config.source, store, plan, batches, known.tables if known is not None else ())
    lag = lag_of(plan, batches)
    named = lru_cache(partial(named_snapshots, store, config.source))
    job = MergeJob(
        SourceTables(config, store, plan, by_table(batches), answers_for(config, store)),
        origin,
        say,
        lag,
        watch=watch,
        named_by_cuts=named,
        now=now,
        refused=refused | _without_namespace(spark, [lake for lake in lakes if lake not in refused]),
    )
    faulty = FaultyTables.of(config, store, plan, say)
    try:
        merged = merge_all(spark, job, lakes, say, faulty.failed, changed)
    except CdcError as error:
        faulty.without(len(lakes) - len(faulty.failed) + faulty.others_that_take_commits(spark, lakes, before), error)
        raise
    finally:
        report_foreign_commits(store, watch, say)
    found = [*(before.uncommented if before is not None else ()), *comments_of(config, batches)]
    uncommented = carry_comments(spark, config, found, say)
    touched = {(cut.table, cut.lake_table) for cut in merged}
    untouched = [cut for cut in before.tables if (cut.table, cut.lake_table) not in touched] if before else []
    current = UnchangedTables(job).entries(spark, untouched, {cut.lake_table for cut in merged} | faulty.lake_tables)
    report_foreign_commits(store, watch, lambda _: None)
    faulty.add_untouched(watch)
    faulty.leave_out(len(lakes))
    tables = (replace(cut, changes=max(cut.changes, changed[cut.table, cut.lake_table])) for cut in (*merged, *current))
    return publish_cut(store, plan, batches, (*tables,), before, now(), time.monotonic() - began, uncommented)


def _lakes_of(
    config: SourceConfig, plan: MergePlan, tables: Collection[TableName], before: Cut | None
) -> tuple[Sequence[LakeMerge], dict[LakeMerge, CdcError]]:
    """Return the lake tables of source tables, and those of them that would be other tables' as well, with their errors."""
    followed = before.followed if before is not None else frozenset()
    refused = colliding(config, {*tables, *followed}, followed, frozenset(one.table for one in plan.held))
    shared = {
        lake: refused[table] for table in sorted(refused.keys() & tables) for lake in lake_merges(config, [table])
    }
    return (*lake_merges(config, set(tables).difference(refused)), *shared), {**shared}


def _without_namespace(spark: SparkSession, lakes: Sequence[LakeMerge]) -> dict[LakeMerge, CdcError]:
    """Create the namespaces of lake tables; returns the tables whose namespace cannot be created."""
    errors = LAKE_FORMAT.ensure_namespaces(spark, {lake.name for lake in lakes})
    return {lake: errors[lake.name] for lake in lakes if lake.name in errors}


def merge_all(
    spark: SparkSession,
    job: MergeJob,
    lakes: Sequence[LakeMerge],
    say: Say,
    failed: list[FailedTable] | None = None,
    changed: Changed | None = None,
) -> list[TableCut]:
    """Merge lake tables in parallel; returns their state afterwards.

    Args:
        spark: a session.
        job: the merge.
        lakes: the tables.
        say: receives one line for each table.
        failed: receives the tables that fail.
        changed: receives the changes of the others.

    Raises:
        MergeError: or another error of a table; its text lists all failures.
    """

    def work(session: SparkSession, lake: LakeMerge) -> list[TableCut]:
        began = time.monotonic()
        try:
            cuts = _merged(job, session, lake)
        except CdcError as error:
            error.fill(source=job.config.source, lake_table=full_name(lake.name), disks=disks_of(job.config))
            if failed is not None:
                failed.append(FailedTable(tuple(lake.tables), str(lake.name), error))
            raise
        applied, took = sum(cut.changes for cut in cuts), time.monotonic() - began
        say(f"{', '.join(lake.tables)}: {counted(applied, 'change')} into {lake.name} in {took:.1f} s")
        if changed is not None:
            changed.update({(cut.table, cut.lake_table): cut.changes for cut in cuts})
        return cuts

    hint = "The other tables are merged; the cut is published when these are as well."
    named = {_label(lake): lake for lake in lakes}
    merged = in_parallel(spark, job.config, named, work, say, done="merged", hint=hint)
    return [cut for cuts in merged for cut in cuts]


def _merged(job: MergeJob, session: SparkSession, lake: LakeMerge) -> list[TableCut]:
    """Merge one lake table; what is not an error of the tree becomes one, so that it fails this table alone."""
    try:
        return merge_table(job, session, lake)
    except CdcError:
        raise
    except Exception as error:
        log.exception("%s could not be merged", lake.name)
        raise MergeError(
            f"could not merge: {type(error).__name__}: {error}",
            hint="This is a fault of the program: report it with the log of the job.",
            table=", ".join(lake.tables),
        ) from error


def _label(lake: LakeMerge) -> str:
    """Return a display name: the source tables, and the lake table if it is routed."""
    tables = ", ".join(lake.tables)
    return f"{tables} into {lake.name}" if any(one.target.routed for one in lake.routed_tables) else tables
