"""The tasks of the maintenance DAG."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook


class CollectOperator(CdcOperator):
    """Remove the batches of a source that are no longer needed, and what no manifest names."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - every task gets one
        """Return how much was removed, why the rest stays, and who holds batches back."""
        from cdc_lib.retention.garbage_collector import carry_out, plan_collection, prune_cursors

        pipeline, config = hook.lake_pipeline(), hook.config
        keep_for = config.store.keep_batches_for
        now, cuts_for = datetime.now(UTC), config.maintenance.keep_snapshots_for
        planned = plan_collection(pipeline.store, pipeline.cursors, config.source, keep_for, now, cuts_for)
        carry_out(pipeline.store, planned)
        prune_cursors(pipeline.store, pipeline.cursors, config.source)
        for one in planned.removals:
            self.log.info("removed: %s %s, %s", one.what, one.folder, counted(one.size, "byte"))
        for why, count in sorted(planned.kept.items()):
            self.log.info("%s kept: %s", counted(count, "window"), why)
        for name, count in sorted(planned.holding.items()):
            self.log.warning("%s keeps %s from being removed", name, counted(count, "old window"))
        return {
            "removed": len(planned.removals) + len(planned.unfinished),
            "bytes": planned.size,
            "kept": planned.kept,
            "holding": planned.holding,
        }


class MaintainOperator(SparkJobOperator):
    """Keep the lake tables of a source small and quick to read."""

    def work(self, hook: CdcHook, context: Context) -> None:
        """Run the job to its end; it does nothing before the first merge.

        Raises:
            CdcError: that of the job.
        """
        self.run_job(context, "maintain", by=self.by(context), handed=hook.store_handed_on())
