"""The task by which people ask for new snapshots, and its form.

The arguments of this operator are templates. The DAGs of the factory fill them from the form; a DAG that is written by hand gives
them as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from cdc_airflow.forms import TABLES, listed
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook


def snapshot_params() -> dict[str, Param]:
    """Return the form of a snapshot."""
    return {
        "tables": Param(
            **TABLES,
            minItems=1,
            title="Tables",
            description="Captured tables, one on a line: shop.orders. * and ? stand for several: shop.*",
        ),
        "key_from": Param(
            "",
            type="string",
            title="From key",
            description="Only rows from this key on, of one table. [1, 5] for two columns.",
        ),
        "key_to": Param("", type="string", title="To key", description="Only rows up to this key, and this key."),
        "where": Param(
            "",
            type="string",
            title="Condition",
            description="Only rows that match, of one table: created >= '2026-01-01'",
        ),
        "why": Param("", type="string", title="Reason", description="It is kept in the cursor."),
    }


class SnapshotOperator(CdcOperator):
    """Ask for new snapshots of tables, or of rows of one; the next runs of the source's DAG read and merge them.

    Doing it again asks again: a table that waits for its snapshot already stays as it is.

    Args:
        tables: ``database.table`` or patterns, as a list or as its JSON.
        key_from: least key of the rows of one table; empty without a lower end.
        key_to: greatest key of them.
        where: a condition on them, instead of keys.
        why: the reason, for people.
    """

    template_fields = (*CdcOperator.template_fields, "tables", "key_from", "key_to", "where", "why")

    def __init__(
        self,
        *,
        tables: Sequence[str] | str,
        key_from: str = "",
        key_to: str = "",
        where: str = "",
        why: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.key_from = key_from
        self.key_to = key_to
        self.where = where
        self.why = why

    def work(self, hook: CdcHook, context: Context) -> list[str]:
        """Return what is read again, in words.

        Raises:
            ConfigError: it is not clear what to read, or a table cannot be read so; nothing was changed.
            SourceError: the server cannot be reached.
        """
        tables = listed(self.tables)
        part = bool(self.key_from or self.key_to or self.where)
        keys_and_where = bool(self.where and (self.key_from or self.key_to))
        if not tables or keys_and_where or (part and len(tables) != 1):
            raise ConfigError(
                "it is not clear what to read",
                hint="Give tables; or one table with key_from and key_to, or with where.",
                source=hook.config.source,
                tables=", ".join(tables) or None,
            )
        asked = self._part(hook, context, tables[0]) if part else self._whole(hook, context, tables)
        for text in asked:
            self.log.info("the next runs read %s", text)
        return asked

    def _part(self, hook: CdcHook, context: Context, table: str) -> list[str]:
        from cdc_lib import requests
        from cdc_lib.snapshot.partial import PartialRequest

        wanted = PartialRequest(table, self.key_from, self.key_to, self.where, self.why)
        requests.snapshot_rows(hook.pipeline(), wanted, by=self.by(context))
        return [wanted.text]

    def _whole(self, hook: CdcHook, context: Context, tables: Sequence[str]) -> list[str]:
        from cdc_lib import requests

        records = requests.resnapshot(hook.pipeline(), tables, by=self.by(context), why=self.why)
        return [f"all rows of {one.table}" for one in records]
