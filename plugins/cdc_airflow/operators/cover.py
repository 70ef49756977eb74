"""The task that compares the key ranges which are due."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk.bases.xcom import BaseXCom

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.verify.coverage.table import TableCoverage


WRONG = "wrong_tables"
"""Key of the XCom that has the tables with wrong rows, for the task that repairs them."""


class CoverOperator(CdcOperator, SkipMixin):
    """Compare the key ranges of tables that are due by ``verify.cover_every`` with the source, without Spark.

    Tasks that come after it are skipped while no row is wrong.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._done: list[TableCoverage] = []

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was done, table by table: counts, never rows.

        Raises:
            AirflowFailException: rows are wrong, and ``verify.on_difference`` is ``fail``.
            CdcError: the source, the store or the lake cannot be read.
        """
        from cdc_airflow.connections import store_keys_of
        from cdc_lib.verify.coverage.start import compare_due_ranges, said

        pipeline, config = hook.pipeline(), hook.config
        keys = store_keys_of(config)
        done = compare_due_ranges(pipeline, (), keys)
        self._done = done
        for is_warning, line in said(config.source, done):
            self.log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
        wrong = {one.table: len(one.coverage.wrong) for one in done if one.coverage.wrong}
        if wrong and config.verify.on_difference == "fail":
            tables = "; ".join(f"{table}: {counted(rows, 'wrong row')}" for table, rows in wrong.items())
            raise AirflowFailException(
                f"source and lake differ: {tables}. cdc verify {config.source} {' '.join(one.in_shell for one in wrong)} --repair"
            )
        summary = {
            str(one.table): {
                "rows": one.rows,
                "ranges": one.ranges,
                "wrong": len(one.coverage.wrong),
                "in flight": one.in_flight,
                **({"not compared": one.failed or one.coverage.skipped} if one.failed or one.coverage.skipped else {}),
            }
            for one in done
        }
        if self.downstream_task_ids:
            context["ti"].xcom_push(WRONG, [str(table) for table in wrong])
            if not wrong:
                # Airflow keeps no return value of a task that skips others.
                context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, summary)
                self.skip(context["ti"], self.downstream_list)
        return summary

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what was compared; the OpenLineage provider calls it, where it is installed. None when nothing was due."""
        from cdc_airflow.lineage.openlineage import cover_lineage

        if not self._done:
            return None
        return cover_lineage(self.hook().config, [one.coverage for one in self._done])
