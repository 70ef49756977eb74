"""The task that compares a source with the lake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.approvals import approver, ask
from cdc_airflow.errors import errors_first
from cdc_airflow.forms import TABLES, is_on, listed
from cdc_airflow.hooks import CdcHook
from cdc_airflow.links import SparkUiLink, VerifyReportLink, links
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.verify import Report

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong, or compared no table."""


def verify_params() -> dict[str, Param]:
    """Return the form of a comparison; the runs of a schedule take its defaults."""
    return {
        "tables": Param(
            [],
            **TABLES,
            title="Tables",
            description="One on a line: shop.orders, shop.*. Those of verify.tables without.",
        ),
        "repair": Param(
            False,
            type="boolean",
            title="Repair",
            description="Read wrong rows again from the source, and write them into the lake.",
        ),
    }


class VerifyOperator(SparkJobOperator):
    """Compare tables with the lake; fails when rows are wrong or no table was compared, which no retry changes.

    With ``approvals.repair_rows`` in the source file, a repair of more rows waits until a person has approved it.

    Args:
        tables: patterns of ``database.table``, as a list or as its JSON; those of ``verify.tables`` without.
        repair: whether wrong rows are read again from the source and written into the lake.
    """

    operator_extra_links = (*links(VerifyReportLink), SparkUiLink())
    template_fields = (*SparkJobOperator.template_fields, "tables", "repair")

    def __init__(self, *, tables: Sequence[str] | str = (), repair: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.repair = repair
        self._report: Report | None = None

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was found, table by table: counts, never rows.

        Raises:
            AirflowFailException: rows are wrong.
            CdcError: that of the job.
        """
        asks = is_on(self.repair) and hook.config.approvals.repair_rows is not None
        repair = is_on(self.repair) and not asks
        return self._judged(context, self._compared(context, hook, repair=repair), repaired=repair)

    def finished(self, context: Context, report: str | None, arguments: list[str]) -> dict[str, Any]:
        """Continue with the report of a job that was deferred.

        Raises:
            AirflowFailException: rows are wrong.
            CdcError: that of the job.
        """
        return self._judged(context, read_report(report), repaired="--repair" in arguments)

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what was compared and repaired; the OpenLineage provider calls it, where it is installed.

        It also asks after a task that failed because rows are wrong. None when nothing was compared.
        """
        from cdc_airflow.lineage.openlineage import verify_lineage
        from cdc_lib.store.verified import last_verified

        if self._report is None:
            return None
        pipeline = self.hook().lake_pipeline()
        return verify_lineage(pipeline.config, self._report, last_verified(pipeline.store, self._report.source))

    def _judged(self, context: Context, report: Report, *, repaired: bool) -> dict[str, Any]:
        """Return the results, or repair wrong rows first; a person is asked where the source file wants it."""
        hook = self.hook()
        most = hook.config.approvals.repair_rows
        if repaired or not is_on(self.repair) or most is None:
            return self._results(report)
        wrong = sum(one.missing + one.extra + one.different + one.unexamined for one in report.tables)
        if wrong > most:
            subject = f"Repair {counted(wrong, 'row')} of {report.source}?"
            ask(
                context,
                hook.config.approvals,
                subject,
                f"{drift_of(report)}. All rows that are wrong by then are repaired.",
            )
        return self._results(report if not wrong else self._compared(context, hook, repair=True))

    def approved(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
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
            return self._results(self._compared(context, self.hook(), repair=True))

    def _compared(self, context: Context, hook: CdcHook, *, repair: bool) -> Report:
        given = [*(["--repair"] if repair else []), "--", *listed(self.tables)]
        handed = hook.handed_on()
        return read_report(self.run_job(context, "verify", *given, handed=handed, good=(0, DRIFT), report=True))

    def _results(self, report: Report) -> dict[str, Any]:
        self._report = report
        if not report.clean:
            raise AirflowFailException(drift_of(report))
        if report.compared_nothing:
            why = "; ".join(f"{one.table}: {one.skipped}" for one in report.tables)
            raise AirflowFailException(f"no table was compared: {why}" if why else "no table was compared")
        return {one.table: result_of(one) for one in report.tables}


def read_report(text: str | None) -> Report:
    """Return the report that a comparison left.

    Raises:
        CorruptBatch: it left none, or not a report.
    """
    from cdc_lib.model.verify import Report
    from cdc_lib.store import documents

    return documents.load(Report, (text or "").encode(), "the report of the comparison")


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
