"""The task that erases rows, and its form."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.approvals import approver, ask
from cdc_airflow.connections import store_keys_of
from cdc_airflow.errors import errors_first
from cdc_airflow.forms import is_on, listed
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.erase.erasing import Erasing

_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def erase_params() -> dict[str, Param]:
    """Return the form of an erasure."""
    return {
        "table": Param(type="string", minLength=1, title="Table", description="As at the source: shop.customers"),
        "keys": Param(
            [], **_TEXTS, title="Keys", description="One on a line; the parts of a key are written as in CSV: de,42"
        ),
        "where": Param(
            "",
            type="string",
            title="Condition",
            description="Instead of keys: the rows that meet it, in DuckDB's SQL.",
        ),
        "columns": Param(
            [],
            **_TEXTS,
            title="Columns",
            description="One on a line: the values that the rows have in them are looked for at the end too.",
        ),
        "values": Param(
            [], **_TEXTS, title="Values", description="One on a line: texts that are looked for at the end too."
        ),
        "lake_only": Param(
            False, type="boolean", title="Lake only", description="Also if the source still has the rows."
        ),
    }


class EraseOperator(SparkJobOperator):
    """Remove rows that the source deleted from the lake and the store, and search for what is left.

    It waits until a person has approved it, unless ``approvals.erase`` in the source file is off. The task keeps its slot while a
    Spark server works: what it looks for is in no place but its memory.

    Args:
        table: ``database.table`` at the source.
        keys: of the rows, each a line of CSV, as a list or as its JSON; empty with a condition.
        where: a condition in DuckDB's SQL on the lake table.
        columns: the values that the rows have in these columns are looked for at the end too; a list or its JSON.
        values: texts that are looked for at the end too; a list or its JSON.
        lake_only: whether the source may still have the rows.
    """

    template_fields = (
        *SparkJobOperator.template_fields, "table", "keys", "where", "columns", "values", "lake_only",
    )  # fmt: skip

    def __init__(
        self,
        *,
        table: str,
        keys: Sequence[str] | str = (),
        where: str = "",
        columns: Sequence[str] | str = (),
        values: Sequence[str] | str = (),
        lake_only: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(deferrable=False, **kwargs)
        self.table = table
        self.keys = keys
        self.where = where
        self.columns = columns
        self.values = values
        self.lake_only = lake_only

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return the id of the erasure, and counts of what was written again and looked at.

        Raises:
            AirflowFailException: something is left.
            ConfigError: no row is named, or the source still has one.
            CdcError: that of the job.
        """
        erasing = self._erasing(hook)
        if hook.config.approvals.erase:
            salt = secrets.token_hex(16)
            reason = f"`{context['run_id']}`; what is erased cannot be brought back."
            ask(context, hook.config.approvals, erasing.question, reason, salt=salt, rows=erasing.digests(salt))
        return self._erased(hook, context, erasing, by=self.by(context))

    def approved(self, context: Context, event: dict[str, Any], salt: str, rows: list[str]) -> dict[str, Any]:
        """Erase the rows as it was approved.

        Args:
            context: of the task.
            event: the answer.
            salt: of the digests.
            rows: digests of the keys at the time of the question.

        Raises:
            AirflowFailException: it was rejected, nobody answered in time, or something is left.
            ConfigError: the condition is met by other rows by now; nothing was erased.
            CdcError: that of the job.
        """
        with errors_first(self.log):
            by, hook = approver(event), self.hook()
            self.log.info("approved by %s", by)
            erasing = self._erasing(hook)
            if erasing.digests(salt) != rows:
                raise ConfigError(
                    "the rows are no longer those that were approved",
                    hint="Start a new run: it asks again.",
                    table=self.table,
                )
            return self._erased(hook, context, erasing, by=f"{self.by(context)}, approved by {by}")

    def _erasing(self, hook: CdcHook) -> Erasing:
        # PyIceberg and Arrow come with it: time that the parsing of DAG files must not take.
        from cdc_lib.erase.erasing import Erasing
        from cdc_lib.erase.wanted import keys_in

        keys, values, table = keys_in(listed(self.keys)), listed(self.values), TableName.parse(self.table)
        return Erasing.of(hook.pipeline(), table, keys, self.where, values, store_keys_of(hook.config))

    def _erased(self, hook: CdcHook, context: Context, erasing: Erasing, *, by: str) -> dict[str, Any]:
        erasure = erasing.begin(listed(self.columns), by=by, lake_only=is_on(self.lake_only))
        named = f"--table={erasure.table}", f"--erasure={erasure.id}"
        self.run_job(context, "erase", *named, handed=hook.store_handed_on())
        erased = erasing.finish(erasure)
        for title, places in (("left", erased.left.found), ("not read", erased.left.unread)):
            for one in places:
                self.log.error("%s: %s, %s: %s", title, one.kind, one.place, one.what)
        if erased.left.found:
            raise AirflowFailException(f"erasure {erasure.id} left something: {erased.remedy}, then clear this task")
        if erased.left.unread:
            raise AirflowFailException(
                f"erasure {erasure.id} is not proved: {counted(len(erased.left.unread), 'place')} could not be read"
            )
        return {"erasure": erasure.id, "rewritten": erased.rewritten, "objects": erased.left.objects}
