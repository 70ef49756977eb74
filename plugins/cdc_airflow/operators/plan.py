"""The first task of a source's DAG: what is there to drain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from cdc_airflow.airflow_versions import conf
from cdc_airflow.approvals import approver
from cdc_airflow.errors import errors_first
from cdc_airflow.failover import ask_to_continue
from cdc_airflow.gauges import show
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.operators.seal_days import day_waits
from cdc_airflow.units import beyond, mapped, title_of
from cdc_lib.errors import TransactionsMissing
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.pace import counted
from cdc_lib.model.waiting import is_idle

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.missing_transactions import MissingTransactions
    from cdc_lib.pipeline import Pipeline

_LISTED = 50
"""Units that a log lists at most; the first snapshot of a source may have thousands."""


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
            by, hook = approver(event), self.hook()
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
        if self.skip_when_idle and first and not units and is_idle(pipeline.cursor(DRAIN), pipeline.cursor(LAKE)):
            self.log.info("nothing to do: the lake has everything up to the end of the binlog")
            self.skip(context["ti"], self._needless(pipeline))
        most, tasks = conf.getint("core", "max_map_length"), mapped(units, hook.config.drain.parallelism)
        if len(tasks) > most:
            self.log.warning(
                "left for the next run: %s; [core] max_map_length is %d", counted(len(tasks) - most, "unit"), most
            )
        tasks = tasks[:most]
        return tasks if first else tasks + beyond(len(tasks), self._after(context), self.downstream_task_ids)

    def _after(self, context: Context) -> dict[str, Any]:
        """Return the states of the tasks that come next in this run."""
        ti = context["ti"]
        found: dict[str, dict[str, Any]] = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=sorted(self.downstream_task_ids), run_ids=[ti.run_id]
        )
        return found.get(ti.run_id, {})

    def _needless(self, pipeline: Pipeline) -> list[Any]:
        """Return the tasks that a run without changes leaves out: a day ends without changes too."""
        after = self.get_flat_relatives(upstream=False)
        if not day_waits(pipeline):
            return list(after)
        return [task for task in after if not getattr(task, "announces_days", False)]

    def _show_gauges(self, pipeline: Pipeline) -> None:
        from cdc_lib.status.overview import gauges_of

        seen = gauges_of(pipeline)
        backlog, left = (seen.backlog, seen.retention_left_seconds) if seen.asked else (None, None)
        show(
            pipeline.config.source,
            retention_hours=left / 3600 if left is not None else None,
            lag_seconds=seen.lag_seconds,
            catch_up_seconds=backlog.seconds if backlog is not None else None,
        )
        if backlog is not None and backlog.bytes > pipeline.config.drain.max_window_bytes:
            self.log.info("%s", backlog)
        if seen.retention_warning:
            self.log.warning("%s", seen.retention_warning)
        for one in seen.unanswered:
            self.log.warning("it is unknown when the server purges what is drained next: %s. %s", one.what, one.hint)
