"""The task that merges archived batches again, and the days that its DAG has runs for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from cdc_airflow.spark_job import SparkJobOperator
from cdc_lib.model.backfill import COPY_SUFFIX

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook

PARAMS = {
    "from": Param(
        None, type=["null", "string"], format="date-time", description="first commit time; the run's own date without"
    ),
    "to": Param(
        None, type=["null", "string"], format="date-time", description="first commit time that no longer counts"
    ),
    "tables": Param([], type="array", items={"type": "string"}, description="patterns of database.table; all without"),
    "into": Param("live", enum=["live", "copy"], description="the lake tables, or tables beside them"),
    "copy_suffix": Param(COPY_SUFFIX, type="string", description="after the names of the tables beside them"),
}
"""What a run may be told."""


class BackfillOperator(SparkJobOperator):
    """Merge the archived batches of a run's data interval, or of the times that it was given, once more."""

    def work(self, hook: CdcHook, context: Context) -> None:  # noqa: ARG002 - every task gets one
        """Run the job to its end; days of which nothing was ever merged are no failure.

        Raises:
            CdcError: that of the job.
        """
        params: dict[str, Any] = dict(context["params"])
        since, until = interval(context, params)
        times = [*(("--since", since) if since else ()), *(("--until", until) if until else ())]
        into = ["--into", str(params["into"]), "--copy-suffix", str(params["copy_suffix"])]
        self.run_job("spark_jobs.backfill", *times, *into, "--", *(str(one) for one in params["tables"]))


def interval(context: Context, params: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the times that the run was given; those of its data interval where it was given none."""
    if params["from"] or params["to"]:
        return params["from"], params["to"]
    run = context["dag_run"]
    start, end = run.data_interval_start, run.data_interval_end
    if start is None or end is None or start == end:
        return None, None
    return start.isoformat(), end.isoformat()
