"""The merge task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from cdc_airflow.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook


class MergeOperator(SparkJobOperator):
    """Merge what the lake cursor has in flight; skipped when it has nothing.

    The job adopts the plan from the cursor, so that it is the same merge whoever starts it, however often.
    """

    def work(self, hook: CdcHook, context: Context) -> None:
        """Run the job to its end.

        Raises:
            AirflowSkipException: there is nothing to merge.
            CdcError: that of the job.
        """
        by = self.by(context)
        if hook.lake_pipeline().plan_merge(by=by) is None:
            raise AirflowSkipException("nothing to merge")
        self.run_job("spark_jobs.merge", by=by, handed=job_secrets(hook))


def job_secrets(hook: CdcHook) -> dict[str, str]:
    """Return the secrets that only Airflow knows and the job may need, because it reads rows back from the source."""
    return hook.handed_on() if hook.config.reselect.is_on else {}
