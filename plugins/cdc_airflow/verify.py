"""The task that compares a source with the lake."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.approvals import approver, ask
from cdc_airflow.errors import errors_first
from cdc_airflow.hooks import CdcHook
from cdc_airflow.links import VerifyReportLink, links
from cdc_airflow.manual import is_on, listed
from cdc_airflow.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.verify import Report

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong."""


class VerifyOperator(SparkJobOperator):
    """Compare tables with the lake; fails when rows are wrong, which no retry changes.

    With ``approvals.repair_rows`` in the source file, a repair of more rows waits until a person has approved it.

    Args:
        tables: patterns of ``database.table``, as a list or as its JSON; those of ``verify.tables`` without.
        repair: whether wrong rows are read again from the source and written into the lake.
    """

    operator_extra_links = links(VerifyReportLink)
    template_fields = (*SparkJobOperator.template_fields, "tables", "repair")

    def __init__(self, *, tables: Sequence[str] | str = (), repair: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.repair = repair

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was found, table by table: counts, never rows.

        Raises:
            AirflowFailException: rows are wrong.
            CdcError: that of the job.
        """
        most = hook.config.approvals.repair_rows
        if not is_on(self.repair) or most is None:
            return self._results(self._compare(hook, repair=is_on(self.repair)))
        report = self._compare(hook, repair=False)
        wrong = sum(one.missing + one.extra + one.different + one.unexamined for one in report.tables)
        if wrong > most:
            subject = f"Repair {wrong} rows of {report.source}?"
            ask(
                context,
                hook.config.approvals,
                subject,
                f"{drift_of(report)}. All rows that are wrong by then are repaired.",
            )
        return self._results(report if not wrong else self._compare(hook, repair=True))

    def approved(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - Airflow's call
        """Compare again and repair, after a person has approved it.

        Args:
            context: of the task.
            event: the answer.

        Raises:
            AirflowFailException: it was rejected, nobody answered in time, or rows are wrong.
            CdcError: that of the job.
        """
        with errors_first(self.log):
            self.log.info("approved by %s", approver(event))
            return self._results(self._compare(CdcHook(self.source_file), repair=True))

    def _compare(self, hook: CdcHook, *, repair: bool) -> Report:
        from cdc_lib.model.verify import Report
        from cdc_lib.store import documents

        with tempfile.TemporaryDirectory(prefix="cdc-verify-") as folder:
            file = Path(folder) / "report.json"
            given = ["--report", str(file), *(["--repair"] if repair else []), "--", *listed(self.tables)]
            self.run_job("spark_jobs.verify", *given, handed=hook.handed_on(), good=(0, DRIFT))
            return documents.load(Report, file.read_bytes(), "the report of the comparison")

    def _results(self, report: Report) -> dict[str, Any]:
        if not report.clean:
            raise AirflowFailException(drift_of(report))
        return {one.table: result_of(one) for one in report.tables}


def drift_of(report: Report) -> str:
    """Say which tables have rows that are wrong, and how to see them."""
    wrong = [one for one in report.tables if not one.skipped and not one.clean]
    tables = "; ".join(
        f"{one.table}: {', '.join(f'{n} {what}' for what, n in result_of(one).items() if n)}" for one in wrong
    )
    return f"source and lake differ: {tables}. See cdc verify {report.source} TABLE --html FILE"


def result_of(one: Any) -> dict[str, Any]:
    """Return what was found in one table as counts."""
    if one.skipped:
        return {"not compared": one.skipped}
    return {
        "rows": one.source_rows,
        "missing": one.missing,
        "extra": one.extra,
        "different": one.different,
        "in flight": one.in_flight,
        "not looked at": one.unexamined,
    }
