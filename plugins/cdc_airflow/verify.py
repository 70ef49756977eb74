"""The task that compares a source with the lake."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook
    from cdc_lib.model.verify import Report

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong."""


class VerifyOperator(SparkJobOperator):
    """Compare the tables that ``verify.tables`` names; fails when rows are wrong, which no retry changes."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - every task gets one
        """Return what was found, table by table: counts, never rows.

        Raises:
            AirflowFailException: rows are wrong.
            CdcError: that of the job.
        """
        from cdc_lib.model.verify import Report
        from cdc_lib.store import documents

        with tempfile.TemporaryDirectory(prefix="cdc-verify-") as folder:
            file = Path(folder) / "report.json"
            self.run_job("spark_jobs.verify", "--report", str(file), handed=hook.handed_on(), good=(0, DRIFT))
            report = documents.load(Report, file.read_bytes(), "the report of the comparison")
        if not report.clean:
            raise AirflowFailException(drift_of(report))
        return {one.table: told(one) for one in report.tables}


def drift_of(report: Report) -> str:
    """Say which tables have rows that are wrong, and how to see them."""
    wrong = [one for one in report.tables if not one.skipped and not one.clean]
    tables = "; ".join(
        f"{one.table}: {', '.join(f'{n} {what}' for what, n in told(one).items() if n)}" for one in wrong
    )
    return f"source and lake differ: {tables}. See cdc verify {report.source} TABLE --html FILE"


def told(one: Any) -> dict[str, Any]:
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
