"""What all tasks of the DAGs have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from cdc_airflow.airflow_versions import with_retries
from cdc_airflow.errors import errors_first
from cdc_airflow.gauges import count
from cdc_airflow.hooks import CdcHook
from cdc_lib.errors import CdcError

if TYPE_CHECKING:
    from airflow.sdk import Context


class CdcOperator(BaseOperator):
    """What the tasks have in common.

    An error of the library is the first line of the log, and says itself whether it is tried again.

    Args:
        source_file: the source's YAML file.
        conn_id: id of the connection with the source's log-in; over ``server.connection`` of the file.
        store_conn_id: id of the connection with the store's keys; over ``store.connection`` of the file.
        spark_conn_id: id of the connection with the Spark of its jobs; over ``merge.connection`` of the file.
    """

    ui_color = "#e8f0fe"
    template_fields: Sequence[str] = ("source_file", "conn_id", "store_conn_id", "spark_conn_id")
    announces_days = False
    """Whether the task is one that :class:`~cdc_airflow.operators.seal_days.SealDaysOperator` makes."""

    def __init__(
        self,
        *,
        source_file: str,
        conn_id: str | None = None,
        store_conn_id: str | None = None,
        spark_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**with_retries(kwargs))
        self.source_file = source_file
        self.conn_id = conn_id
        self.store_conn_id = store_conn_id
        self.spark_conn_id = spark_conn_id

    def hook(self) -> CdcHook:
        """Return what the task works with; its file is read again."""
        return CdcHook(self.source_file, self.conn_id, self.store_conn_id, self.spark_conn_id)

    def execute(self, context: Context) -> Any:
        """Do the task's work."""
        with errors_first(self.log):
            hook = self.hook()
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
        """Say who asks, for the cursor's record of moves: the task, and the person who started its run, if Airflow knows one."""
        ti = context["ti"]
        task = f"airflow {ti.dag_id} {ti.run_id} {ti.task_id} try {ti.try_number}"
        person = getattr(context.get("dag_run"), "triggering_user_name", None)
        return f"{task}, started by {person}" if person else task
