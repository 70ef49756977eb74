"""The end of a table's quarantine, requested by a run with a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import Param

from cdc_airflow.approvals import approver, ask
from cdc_airflow.errors import errors_first
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import TableName

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.quarantine import QuarantineRecord
    from cdc_lib.pipeline import Pipeline


def resume_params() -> dict[str, Param]:
    """Return the form that brings a quarantined table back."""
    return {
        "table": Param(
            type="string",
            minLength=1,
            title="Table",
            description="A quarantined table, by its name: shop.orders. The page and cdc quarantine list name them.",
        )
    }


class ResumeOperator(CdcOperator):
    """Follow a quarantined table again from here; the next runs of the source's DAG read it whole and merge that.

    With ``approvals.resume`` in the source file, the table stays quarantined until a person has approved it.

    Args:
        table: ``database.table``; a name and no pattern.
    """

    template_fields = (*CdcOperator.template_fields, "table")

    def __init__(self, *, table: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from which position the table is followed again, and whether a snapshot of it follows.

        Raises:
            ConfigError: the table is not quarantined, or cannot be read by SELECT; nothing was changed.
            SourceError: the server cannot be reached.
        """
        pipeline = hook.pipeline()
        if hook.config.approvals.resume:
            self._ask(hook, context, self._record(pipeline))
        return self._resumed(pipeline, by=self.by(context))

    def approved(self, context: Context, event: dict[str, Any], start: str, epoch: int) -> dict[str, Any]:
        """End the quarantine that was shown.

        Args:
            context: of the task.
            event: the answer.
            start: where the quarantine that was shown begins.
            epoch: of that position.

        Raises:
            AirflowFailException: it was rejected, or nobody answered in time.
            ConfigError: the table is no longer quarantined, or for another fault; nothing was changed.
        """
        with errors_first(self.log):
            by, hook = approver(event), self.hook()
            self.log.info("approved by %s", by)
            pipeline = hook.pipeline()
            record = self._record(pipeline)
            if (str(record.start), record.epoch) != (start, epoch):
                raise ConfigError(
                    f"the quarantine of {record.table} is no longer the one that was approved",
                    hint="Start a new run: it asks again.",
                    source=hook.config.source,
                )
            return self._resumed(pipeline, by=f"{self.by(context)}, approved by {by}")

    def _record(self, pipeline: Pipeline) -> QuarantineRecord:
        from cdc_lib.quarantine.records import open_record

        cursor = pipeline.required("drain")
        return open_record(cursor, TableName.parse(self.table))

    def _ask(self, hook: CdcHook, context: Context, record: QuarantineRecord) -> NoReturn:
        fault = record.fault
        why = f"{fault.reason} [`{fault.position}`]. {fault.hint}".strip() if fault is not None else record.why
        ask(
            context,
            hook.config.approvals,
            f"Resume {record.table} of {hook.config.source}?",
            f"It is quarantined since `{record.start}`: {why}",
            start=str(record.start),
            epoch=record.epoch,
        )

    def _resumed(self, pipeline: Pipeline, *, by: str) -> dict[str, Any]:
        from cdc_lib import requests

        record = requests.resume_table(pipeline, self.table, by=by)
        self.log.info("%s is followed again from %s on", record.table, record.released_position)
        if record.snapshot_id:
            self.log.info("the next runs read it whole; until they have merged that, its lake table stays as it is")
        else:
            self.log.warning(
                "the source has no such table any more, or does not capture it: its lake table stays as it is"
            )
        return {
            "table": record.table,
            "position": str(record.released_position),
            "snapshot": bool(record.snapshot_id),
        }
