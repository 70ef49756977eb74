"""The tasks of a source's DAG, each one call into the library.

Rule 1: every task finds out automatically, from the cursors and the store, what there is to do. What another task returned is
for people to see; only `drain` takes its unit from there, and a unit that is not in flight any more is no work.
Rule 2: an ack counts evidence in the store. Marking a task success makes no evidence.
Rule 3: doing a task again changes nothing that was done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import BaseOperator, conf

from cdc_airflow.assets import announce
from cdc_airflow.errors import airflow_errors
from cdc_airflow.gauges import show
from cdc_airflow.hooks import CdcHook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.merge_plan import Cut
    from cdc_lib.pipeline import AckResult, Pipeline


class CdcOperator(BaseOperator):
    """What the tasks have in common.

    Args:
        source_file: the source's YAML file.
    """

    ui_color = "#e8f0fe"

    def __init__(self, *, source_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source_file = source_file

    def execute(self, context: Context) -> Any:
        """Do the task's work, with the library's errors as Airflow's."""
        with airflow_errors():
            return self.work(CdcHook(self.source_file), context)

    @abstractmethod
    def work(self, hook: CdcHook, context: Context) -> Any:
        """Do the work and return what people may want to see: ids, positions and counts, never rows or secrets."""

    def by(self, context: Context) -> str:
        """Say who asks, for the cursor's record of moves."""
        ti = context["ti"]
        return f"airflow {ti.dag_id} {ti.run_id} {ti.task_id} try {ti.try_number}"


class PlanOperator(CdcOperator):
    """Adopt the units that are in flight, or put new ones in flight; their plain forms are what `drain` is mapped over."""

    def work(self, hook: CdcHook, context: Context) -> list[dict[str, Any]]:
        """Return the units as plain dicts, as many of the first as Airflow can map a task over."""
        from cdc_lib.store.documents import to_plain

        pipeline = hook.pipeline()
        try:
            units = pipeline.plan(by=self.by(context))
        finally:
            # Also of a plan that fails: an alert on the lag must go off when the source is dead or stuck.
            self._show_gauges(pipeline)
        for unit in units:
            self.log.info("in flight: %s", unit.id)
        most = conf.getint("core", "max_map_length")
        if len(units) > most:
            self.log.warning("%d units wait for the next run: [core] max_map_length is %d", len(units) - most, most)
        return [to_plain(unit) for unit in units[:most]]

    def _show_gauges(self, pipeline: Pipeline) -> None:
        seen = pipeline.gauges()
        show(pipeline.config.source, retention_hours=seen.retention_hours, lag_seconds=seen.lag_seconds)
        if seen.warning:
            self.log.warning("%s", seen.warning)


class DrainOperator(CdcOperator):
    """Read one unit and write its batch; a unit whose batch is there already is left as it is.

    Args:
        unit: a window or snapshot task as :class:`PlanOperator` returned it.
    """

    def __init__(self, *, unit: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was written."""
        from cdc_lib.model.window import Window
        from cdc_lib.store.documents import unit_from_plain

        unit = unit_from_plain(self.unit)
        cast("dict[str, Any]", context)["unit_id"] = unit.id  # names the mapped task; see map_index_template
        result = hook.pipeline().drain(unit)
        kind = "window" if isinstance(unit, Window) else "snapshot"
        figures = {"rows": result.rows, "bytes": result.bytes, "seconds": result.seconds}
        show(unit.source, **{f"{kind}_{name}": value for name, value in figures.items()})
        self.log.info(
            "%d batches, %d rows, %d events, %d bytes", result.batches, result.rows, result.events, result.bytes
        )
        for one in result.quarantined:
            self.log.warning("%s is left out: %s [%s]", one.table, one.fault.reason, one.fault.position)
        return {**asdict(result), "quarantined": [one.table for one in result.quarantined]}


class AckDrainOperator(CdcOperator):
    """Move the drain cursor over what is durable."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        return self.told(hook.pipeline().ack_drain(by=self.by(context)))

    def told(self, result: AckResult) -> dict[str, Any]:
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


class AckLakeOperator(AckDrainOperator):
    """Move the lake cursor to the cut that the merge published, and announce the tables that it changed.

    The events of a merge are emitted at least once: again when the task is done again, with the same ``merge_id``.
    """

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        pipeline = hook.lake_pipeline()
        result = pipeline.ack_lake(by=self.by(context))
        moved = bool(result.windows or result.chunks)
        planned = context["ti"].xcom_pull(task_ids="plan_merge")
        cut = merged_cut(pipeline, planned, moved=moved)
        if cut is not None:
            for uri in announce(cut, context["outlet_events"]):
                self.log.info("changed: %s", uri)
        return self.told(result)


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
