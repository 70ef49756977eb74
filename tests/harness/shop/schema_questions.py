"""Questions about schema changes, stored as a merge stores them."""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_lib.errors import CdcError
from cdc_lib.merge.stopped_change import StoppedChange
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.position import Position
from cdc_lib.model.schema_question import SchemaChangeKind
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store.failed_tables import keep_stopped

ASKED_AT = Position("binlog.000003", 120)


def asked_table(source: str, table: TableName, kind: SchemaChangeKind, position: Position = ASKED_AT) -> StoppedTable:
    """Return a table that waits for an answer."""
    what = f"ran {kind.upper().replace('_', ' ')} at {position}"
    error: CdcError = StoppedChange(table, kind, 1, position, what).asked()
    error.fill(source=source)
    return StoppedTable.by(error, (table,), f"lake.{table}")


def keep_question(
    store: ObjectStore,
    source: str,
    table: TableName,
    kind: SchemaChangeKind = "truncate",
    position: Position = ASKED_AT,
) -> None:
    """Store what the last merge of a source asked about one table."""
    asked = (asked_table(source, table, kind, position),)
    keep_stopped(store, Stopped(source, "m1", datetime(2026, 11, 1, tzinfo=UTC), asked))
