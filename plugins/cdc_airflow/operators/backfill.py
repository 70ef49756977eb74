"""The task that merges archived batches again, and the days that its DAG has runs for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from cdc_airflow.forms import listed
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillReport

if TYPE_CHECKING:
    from airflow.sdk import Context

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
"""The form of a run."""


class BackfillOperator(SparkJobOperator):
    """Merge the archived batches of a run's data interval, or of the times that it was given, once more.

    Args:
        since: first commit time; with neither end, the run's data interval, or all that is stored where it has none.
        until: first commit time that no longer counts.
        tables: patterns of ``database.table``, as a list or as its JSON; all without.
        into: ``live``, the lake tables, or ``copy``, tables beside them.
        copy_suffix: after the names of the tables beside them.
    """

    template_fields = (*SparkJobOperator.template_fields, "since", "until", "tables", "into", "copy_suffix")

    def __init__(
        self,
        *,
        since: str = "",
        until: str = "",
        tables: Sequence[str] | str = (),
        into: str = "live",
        copy_suffix: str = COPY_SUFFIX,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.since = since
        self.until = until
        self.tables = tables
        self.into = into
        self.copy_suffix = copy_suffix
        self._report: BackfillReport | None = None

    def work(self, hook: CdcHook, context: Context) -> None:
        """Run the job to its end; days of which nothing was ever merged are no failure.

        Raises:
            CdcError: that of the job.
        """
        since, until = self._interval(context)
        times = [*(("--since", since) if since else ()), *(("--until", until) if until else ())]
        into = ["--into", self.into, "--copy-suffix", self.copy_suffix]
        arguments = (*times, *into, "--", *listed(self.tables))
        report = self.run_job(context, "backfill", *arguments, handed=hook.store_handed_on(), report=True)
        self._report = read_report(report)

    def finished(self, context: Context, report: str | None, arguments: list[str]) -> None:  # noqa: ARG002 - the report has it all
        """Remember what a job that was deferred has merged."""
        self._report = read_report(report)

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what was read and merged; the OpenLineage provider calls it, where it is installed.

        None when nothing of the period was ever merged.
        """
        from cdc_airflow.lineage.openlineage import backfill_lineage

        if self._report is None:
            return None
        return backfill_lineage(self.hook().config, self._report)

    def _interval(self, context: Context) -> tuple[str | None, str | None]:
        """Return the times that the run was given; those of its data interval where it was given none."""
        if self.since or self.until:
            return self.since or None, self.until or None
        return interval(context)


def read_report(text: str | None) -> BackfillReport | None:
    """Return what a job says that it has merged; None where it found nothing to merge.

    Raises:
        CorruptBatch: it left something else.
    """
    from cdc_lib.store import documents

    return documents.load(BackfillReport, text.encode(), "the report of the backfill") if text is not None else None


def interval(context: Context) -> tuple[str | None, str | None]:
    """Return the times of a run's data interval; none of a run that has none."""
    run = context["dag_run"]
    start, end = run.data_interval_start, run.data_interval_end
    if start is None or end is None or start == end:
        return None, None
    return start.isoformat(), end.isoformat()
