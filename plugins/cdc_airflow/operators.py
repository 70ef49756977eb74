"""The tasks of a source's DAG, each one call into the library.

Rule 1: every task finds out automatically, from the cursors and the store, what there is to do. What another task returned is
for people to see; only `drain` takes its unit from there, and a unit that is not in flight any more is no work.
Rule 2: an ack counts evidence in the store. Marking a task success makes no evidence.
Rule 3: doing a task again changes nothing that was done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk import BaseOperator, conf
from airflow.sdk.bases.xcom import BaseXCom

from cdc_airflow.approvals import approver
from cdc_airflow.assets import CutContext, announce
from cdc_airflow.errors import CdcRetryPolicy, errors_first
from cdc_airflow.failover import ask_to_continue
from cdc_airflow.gauges import count, show
from cdc_airflow.hooks import CdcHook
from cdc_airflow.links import CutLink, WindowLink, links
from cdc_airflow.units import SHARE, mapped, snapshots_of, title_of, title_of_share
from cdc_lib.errors import CdcError, TransactionsMissing

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.merge_plan import Cut
    from cdc_lib.model.missing_transactions import MissingTransactions
    from cdc_lib.model.window import DrainUnit
    from cdc_lib.pipeline import AckResult, Pipeline


MAP_INDEX = "{{ unit_title }}"
"""``map_index_template`` of mapped drain tasks."""

_LISTED = 50
"""Units that a log lists at most; the first snapshot of a source may have thousands."""


class CdcOperator(BaseOperator):
    """What the tasks have in common.

    An error of the library is the first line of the log, and says itself whether it is tried again.

    Args:
        source_file: the source's YAML file.
    """

    ui_color = "#e8f0fe"
    template_fields: Sequence[str] = ("source_file",)
    announces_days = False
    """Whether the task is one that :class:`~cdc_airflow.days.SealDaysOperator` makes."""

    def __init__(self, *, source_file: str, **kwargs: Any) -> None:
        # Of a mapped task this is called with Airflow's default, which is None.
        super().__init__(**{**kwargs, "retry_policy": kwargs.get("retry_policy") or CdcRetryPolicy()})
        self.source_file = source_file

    def execute(self, context: Context) -> Any:
        """Do the task's work."""
        with errors_first(self.log):
            hook = CdcHook(self.source_file)
            ti = context.get("ti")
            if ti is not None and ti.try_number > 1:
                self._count_retry(hook)
            return self.work(hook, context)

    def _count_retry(self, hook: CdcHook) -> None:
        """Count a try after the first in Airflow's metrics, and in the store for Prometheus."""
        from cdc_lib.store.observations import note_retry

        count(hook.config.source, "retries", 1, task_id=self.task_id)
        try:
            note_retry(hook.lake_pipeline().store, hook.config.source, self.task_id)
        except CdcError as error:  # the work may need no store, or will say the same as its own error
            self.log.warning("this retry is missing in cdc_task_retries_total: %s", error)

    @abstractmethod
    def work(self, hook: CdcHook, context: Context) -> Any:
        """Do the work and return what people may want to see: ids, positions and counts, never rows or secrets."""

    def by(self, context: Context) -> str:
        """Say who asks, for the cursor's record of moves."""
        ti = context["ti"]
        return f"airflow {ti.dag_id} {ti.run_id} {ti.task_id} try {ti.try_number}"


class PlanOperator(CdcOperator, SkipMixin):
    """Adopt the units that are in flight, or put new ones in flight; their plain forms are what `drain` is mapped over.

    With ``failover.on_missing_transactions: ask`` in the source file, a plan at a new server that never had transactions that were
    read waits until a person has approved it.

    A run that has nothing to do ends here.

    Args:
        skip_when_idle: whether the first try skips all tasks after this one when there is nothing to drain, merge or acknowledge.
    """

    def __init__(self, *, skip_when_idle: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.skip_when_idle = skip_when_idle

    def work(self, hook: CdcHook, context: Context) -> list[dict[str, Any]]:
        """Return what `drain` is mapped over, as much of it as Airflow can map a task over."""
        try:
            return self._planned(hook, context, by=self.by(context))
        except TransactionsMissing as error:
            if hook.config.failover.on_missing_transactions != "ask":
                raise
            self.log.warning("%s", error.message)
            ask_to_continue(context, hook.config, error)

    def approved(self, context: Context, event: dict[str, Any], server: str, missing: str) -> list[dict[str, Any]]:
        """Plan at the new server without the transactions that were shown; the cursor records who approved it.

        Args:
            context: of the task.
            event: the answer.
            server: the one that the question named.
            missing: the GTIDs of these transactions.

        Raises:
            AirflowFailException: it was rejected, or nobody answered in time.
            TransactionsMissing: another server answers by now, or more transactions are missing.
        """
        from cdc_lib.model.missing_transactions import MissingTransactions

        with errors_first(self.log):
            by, hook = approver(event), CdcHook(self.source_file)
            self.log.info("approved by %s", by)
            accepted = MissingTransactions(server, missing)
            return self._planned(hook, context, by=f"{self.by(context)}, approved by {by}", accepted=accepted)

    def _planned(
        self, hook: CdcHook, context: Context, *, by: str, accepted: MissingTransactions | None = None
    ) -> list[dict[str, Any]]:
        pipeline = hook.pipeline()
        try:
            units = pipeline.plan(by=by, accepted=accepted)
        finally:
            # Also of a plan that fails: an alert on the lag must go off when the source is dead or stuck.
            self._show_gauges(pipeline)
        for unit in units[:_LISTED]:
            self.log.info("in flight: %s (%s)", title_of(unit), unit.id)
        if len(units) > _LISTED:
            self.log.info("and %d more", len(units) - _LISTED)
        # The drains of a run whose plan is cleared are mapped already: Airflow would run a skipped one without its unit.
        first = context["ti"].try_number == 1
        if self.skip_when_idle and first and not units and pipeline.is_idle():
            self.log.info("nothing to do: the lake has everything up to the end of the binlog")
            self.skip(context["ti"], self._needless(pipeline))
        most, tasks = conf.getint("core", "max_map_length"), mapped(units, hook.config.drain.parallelism)
        if len(tasks) > most:
            self.log.warning("%d units wait for the next run: [core] max_map_length is %d", len(tasks) - most, most)
        return tasks[:most]

    def _needless(self, pipeline: Pipeline) -> list[Any]:
        """Return the tasks that a run without changes leaves out: a day ends without changes too."""
        after = self.get_flat_relatives(upstream=False)
        if not day_waits(pipeline):
            return list(after)
        return [task for task in after if not getattr(task, "announces_days", False)]

    def _show_gauges(self, pipeline: Pipeline) -> None:
        seen = pipeline.gauges()
        show(pipeline.config.source, retention_hours=seen.retention_hours, lag_seconds=seen.lag_seconds)
        if seen.warning:
            self.log.warning("%s", seen.warning)


class DrainOperator(CdcOperator):
    """Read one unit, or a share of many snapshots, and write its batches; a batch that is there already is left as it is.

    Args:
        unit: a window, a snapshot task or a share, as :class:`PlanOperator` returned it.
    """

    operator_extra_links = links(WindowLink)

    def __init__(self, *, unit: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit
        self._drained_units: list[DrainUnit] = []

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was written.

        A table of a share that needs a person keeps no other from being read. The task fails after the last one.
        """
        from cdc_lib.model.cursor import DRAIN
        from cdc_lib.store.documents import unit_from_plain

        pipeline = hook.pipeline()
        if self.unit.get("kind") != SHARE:
            unit = unit_from_plain(self.unit)
            return self._drained(pipeline, unit, context, title_of(unit))
        tasks = snapshots_of(self.unit, pipeline.cursors.load(hook.config.source, DRAIN))
        title = title_of_share(tasks)
        cast("dict[str, Any]", context)["unit_title"] = title  # also if no snapshot is left
        failed: list[CdcError] = []
        done = []
        for task in tasks:
            try:
                done.append(self._drained(pipeline, task, context, title))
            except CdcError as error:
                if error.retryable:
                    raise  # the next table would most likely meet the same
                failed.append(error)
                self.log.error("%s: %s", title_of(task), error.message)  # noqa: TRY400 - Airflow logs the traceback of the first
        if failed:
            self.log.error("%d of %d snapshots failed; the first error follows", len(failed), len(tasks))
            raise failed[0]
        sums = {name: sum(one[name] for one in done) for name in ("batches", "rows", "bytes", "events", "seconds")}
        return {"snapshots": len(done), **sums, "quarantined": [table for one in done for table in one["quarantined"]]}

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what was read and which batches hold it; the OpenLineage provider calls it, where it is installed.

        It also asks after a task that failed: then for the snapshots of a share that were read. None when nothing was.
        """
        from cdc_airflow.lineage.openlineage import drain_lineage
        from cdc_lib.store.manifests import manifests_of

        if not self._drained_units:
            return None
        pipeline = CdcHook(self.source_file).lake_pipeline()
        found = [one for unit in self._drained_units for one in manifests_of(pipeline.store, unit)]
        return drain_lineage(pipeline.config, found) if found else None

    def _drained(self, pipeline: Pipeline, unit: DrainUnit, context: Context, title: str) -> dict[str, Any]:
        """Drain one unit, log and count it."""
        from cdc_lib.model.window import Window
        from cdc_lib.store.layout import manifest_key
        from cdc_lib.store.manifests import find_manifest

        named = cast("dict[str, Any]", context)
        named["unit_title"] = title  # names the mapped task; see map_index_template
        result = pipeline.drain(unit)
        self._drained_units.append(unit)
        if isinstance(unit, Window):
            named["unit_title"] = title_of(unit, find_manifest(pipeline.store, manifest_key(unit)))
        kind = "window" if isinstance(unit, Window) else "snapshot"
        figures = {"rows": result.rows, "bytes": result.bytes, "seconds": result.seconds}
        show(unit.source, **{f"{kind}_{name}": value for name, value in figures.items()})
        self.log.info(
            "%s: %d batches, %d rows, %d events, %d bytes",
            title_of(unit), result.batches, result.rows, result.events, result.bytes,
        )  # fmt: skip
        for one in result.quarantined:
            self.log.warning("%s is left out: %s [%s]", one.table, one.fault.reason, one.fault.position)
        return {**asdict(result), "quarantined": [one.table for one in result.quarantined]}


class AckDrainOperator(CdcOperator):
    """Move the drain cursor over what is durable."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        from cdc_lib.model.cursor import DRAIN

        pipeline = hook.pipeline()
        result = pipeline.ack_drain(by=self.by(context))
        if (drain := pipeline.cursors.load(hook.config.source, DRAIN)) is not None:
            show(hook.config.source, quarantined_tables=len(drain.quarantined_tables))
        return self.summary(result)

    def summary(self, result: AckResult) -> dict[str, Any]:
        """Log an ack and return it as plain values."""
        self.log.info(
            "the %s cursor went from %s to %s: %d windows, %d chunks",
            result.consumer, result.start, result.stop, result.windows, result.chunks,
        )  # fmt: skip
        if result.waiting:
            self.log.warning("%d units in flight have no batch yet; the next run drains them", result.waiting)
        for one in result.quarantined:
            if one.fault is None:
                self.log.info("%s is read again: %s", one.table, one.why)
                continue
            self.log.warning(
                "%s is quarantined; its lake table is as of %s: %s [%s]. See cdc status; cdc quarantine resume brings it back",
                one.table, one.as_of, one.fault.reason, one.fault.position,
            )  # fmt: skip
        tables = [one.table for one in result.quarantined]
        return {**asdict(result), "start": str(result.start), "stop": str(result.stop), "quarantined": tables}


class PlanMergeOperator(CdcOperator):
    """Adopt the merge that is in flight, or put one in flight for the batches that wait."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any] | None:
        """Return the plan's id and bounds; None when there is nothing to merge."""
        plan = hook.lake_pipeline().plan_merge(by=self.by(context))
        if plan is None:
            self.log.info("nothing to merge")
            return None
        self.log.info("merge %s: %d batches from %s to %s", plan.merge_id, len(plan.batches), plan.start, plan.stop)
        return {
            "merge_id": plan.merge_id,
            "start": str(plan.start),
            "stop": str(plan.stop),
            "batches": len(plan.batches),
        }


class AckLakeOperator(AckDrainOperator, SkipMixin):
    """Move the lake cursor to the cut that the merge published, and announce the tables that it changed.

    The events of a merge are emitted at least once: again when the task is done again, with the same ``merge_id``. Tasks that
    announce days are skipped while no day waits.
    """

    operator_extra_links = links(CutLink)

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        pipeline = hook.lake_pipeline()
        result = pipeline.ack_lake(by=self.by(context))
        moved = bool(result.windows or result.chunks)
        planned = context["ti"].xcom_pull(task_ids="plan_merge")
        cut = merged_cut(pipeline, planned, moved=moved)
        if cut is not None:
            for uri in announce(cut, context["outlet_events"], cut_context(pipeline, cut)):
                self.log.info("changed: %s", uri)
            if moved:  # an ack that is done again has no rows
                _count_rows(cut)
        summary = self.summary(result)
        after = self.downstream_list if self.downstream_task_ids else ()
        days = [task for task in after if getattr(task, "announces_days", False)]
        if days and not day_waits(pipeline):
            # Airflow keeps no return value of a task that skips others.
            context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, summary)
            self.skip(context["ti"], days)
        return summary


def day_waits(pipeline: Pipeline) -> bool:
    """Whether a day is complete in the lake and not known to be announced, or nobody looked yet; the server is not asked."""
    from cdc_lib.status.sealed_days import sealed_days_of

    return sealed_days_of(pipeline.config, pipeline.store, pipeline.cursors).needs_a_look


def merged_cut(pipeline: Pipeline, planned: Mapping[str, Any] | None, *, moved: bool) -> Cut | None:
    """Return the cut to announce: that of this run's plan, or the last one when only the ack knows of a merge.

    Args:
        pipeline: whose store holds the cuts.
        planned: what `plan_merge` returned; nothing when it was marked success or had nothing to do.
        moved: whether the ack moved the cursor.
    """
    from cdc_lib.store.cuts import cut_of, last_cut

    if planned is not None:
        return cut_of(pipeline.store, pipeline.config.source, str(planned["merge_id"]))
    return last_cut(pipeline.store, pipeline.config.source) if moved else None


def cut_context(pipeline: Pipeline, cut: Cut) -> CutContext:
    """Return what the store knows beside a cut: no server is asked, so that the lag is at most what it says."""
    from cdc_lib.model.cursor import DRAIN, LAKE
    from cdc_lib.status.changed_rows import equal_tables
    from cdc_lib.status.overview import lag_seconds
    from cdc_lib.store.after_merge import last_after_merge
    from cdc_lib.store.verified import last_verified

    source, store = pipeline.config.source, pipeline.store
    verified = last_verified(store, source)
    drain, lake = (pipeline.cursors.load(source, consumer) for consumer in (DRAIN, LAKE))
    there = lake is not None and (lake.epoch, lake.position) == (cut.epoch, cut.position)
    return CutContext(
        gtid_set=lake.gtid_set if lake is not None and there and lake.gtids_known else "",
        lag_seconds=lag_seconds(store, drain, lake, None, published=True),
        verified={(one.table, one.lake_table): one for one in verified},
        changed={(one.table, one.lake_table): one for one in equal_tables(last_after_merge(store, source), verified)},
    )


def _count_rows(cut: Cut) -> None:
    """Send what a merge did as metrics."""
    show(cut.source, merge_seconds=cut.seconds)
    for table in cut.tables:
        if table.rows is not None:
            rows = table.rows
            counts = {"c": rows.inserts, "u": rows.updates, "d": rows.deletes, "r": rows.reads}
            for op, number in counts.items():
                count(cut.source, "rows_merged", number, table=table.table, op=op)
