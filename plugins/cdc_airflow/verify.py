"""The task that compares a source with the lake."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.links import VerifyReportLink, links
from cdc_airflow.manual import is_on, listed
from cdc_airflow.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook
    from cdc_lib.model.verify import Report

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong."""


class VerifyOperator(SparkJobOperator):
    """Compare tables with the lake; fails when rows are wrong, which no retry changes.

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
            given = ["--report", str(file), *(["--repair"] if is_on(self.repair) else []), "--", *listed(self.tables)]
            self.run_job("spark_jobs.verify", *given, handed=hook.handed_on(), good=(0, DRIFT))
            report = documents.load(Report, file.read_bytes(), "the report of the comparison")
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
