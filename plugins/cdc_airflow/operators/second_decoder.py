"""The task that decodes some windows of each day a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook


class DecodeAgainOperator(CdcOperator):
    """Compare some windows of the day with what mysql-replication decodes from the server, as ``verify.daily_windows`` says."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:  # noqa: ARG002 - every task gets one
        """Return what was found, window by window: counts, never rows.

        Raises:
            AirflowFailException: changes differ, or no window was compared, which no retry changes.
            CdcError: the server or the store cannot be read.
        """
        from cdc_lib.verify.batches.daily import DailyVerification
        from cdc_lib.verify.batches.windows import BatchVerification

        pipeline, config = hook.pipeline(), hook.config
        verification = BatchVerification(pipeline)
        report = DailyVerification(verification, config.verify.daily_windows).run()
        for one in report.windows:
            if one.skipped:
                self.log.warning("%s is not comparable: %s", one.window, one.skipped)
                continue
            if one.archived:
                self.log.info("%s was decoded from its raw archive, not from the server: %s", one.window, one.archived)
            self.log.info(
                "%s: %s equal, %d differ, %d not comparable",
                one.window,
                counted(one.equal, "change"),
                one.differing,
                one.uncomparable,
            )
            for left in one.not_comparable:
                what = f"{left.table}.{left.column}" if left.column else str(left.table)
                self.log.info("%s: %s not comparable: %s", what, counted(left.changes, "change"), left.why)
            for change in one.differences[:10]:
                self.log.error("%s %d:%d row %d: %s", change.table, change.file, change.offset, change.row, change.kind)
        wrong = [one.window for one in report.windows if one.differing]
        if wrong:
            windows = " ".join(f"--window {window}" for window in wrong)
            raise AirflowFailException(
                f"the binlog differs from {counted(len(wrong), 'batch')}. See cdc verify windows {config.source} {windows}"
            )
        if report.windows and report.compared_nothing:
            why = "; ".join(sorted({one.skipped for one in report.windows if one.skipped})) or "no change is comparable"
            raise AirflowFailException(f"no window was compared: {why}. See cdc verify windows {config.source}")
        return {
            one.window: {"equal": one.equal, "not comparable": one.skipped or one.uncomparable}
            for one in report.windows
        }
