"""Changes as the entries of alibaba canal (its CanalEntry.proto): header, eventType, rowDatas with columns.

Batches have after images, and before images of deletes only: ``beforeColumns`` is empty for updates. ``updated`` is null if
the binlog does not show whether an update changed the column. Values are text, as in canal; binary ones in hex.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from cdc_lib.consumers.batch import Batch
from cdc_lib.consumers.batch_slice import BatchSlice
from cdc_lib.consumers.rows import ORDER, TableRows
from cdc_lib.model.manifest import ABSENT, BINLOG, CELL_ABSENT, CELL_HERE, EPOCH, GTID, OFFSET, OP, TS, Ddl
from cdc_lib.model.position import Position
from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.model.server_identity import ServerIdentity

_EVENTS = {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}
_STATEMENTS = {
    ("CREATE", "TABLE"): "CREATE", ("ALTER", "TABLE"): "ALTER", ("DROP", "TABLE"): "ERASE", ("RENAME", "TABLE"): "RENAME",
    ("CREATE", "INDEX"): "CINDEX", ("DROP", "INDEX"): "DINDEX",
}  # fmt: skip
_INTEGERS = {1: (-6, 5), 2: (5, 4), 3: (4, 4), 4: (4, -5), 8: (-5, 3)}
"""Constants of java.sql.Types by width, signed and unsigned: an unsigned integer has the next wider type, as canal has it."""
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def entries(batch: Batch) -> Iterator[dict[str, Any]]:
    """Yield the entries of a batch in the order of changes: one for the rows of one event, one for a statement."""
    parts = {part.manifest.epoch: part for part in batch.parts}
    found: list[tuple[tuple[int, ...], dict[str, Any]]] = [
        (position, entry) for rows in batch.changes() for position, entry in _row_entries(rows, parts)
    ]
    for part in batch.parts:
        for ddl in part.manifest.ddl:
            if ddl in batch.ddl:
                position = (part.manifest.epoch, ddl.position.file_number, ddl.position.offset, 0)
                found.append((position, _ddl_entry(ddl, part.manifest.identity)))
    yield from (entry for _, entry in sorted(found, key=itemgetter(0)))


def _row_entries(
    changes: TableRows, parts: Mapping[int, BatchSlice]
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    event = itemgetter(EPOCH, BINLOG, OFFSET, OP)
    for (epoch, file, offset, op), rows in groupby(changes.rows.to_pylist(), event):
        some = list(rows)
        manifest = parts[epoch].manifest
        base = manifest.window.start.file if manifest.window else ""
        entry = {
            "header": _header(manifest.identity, _file(base, file), offset, changes.schema, _EVENTS[op], some[0]),
            "entryType": "ROWDATA",
            "eventType": _EVENTS[op],
            "isDdl": False,
            "sql": None,
            "rowDatas": [_row_data(changes.schema, row) for row in some],
        }
        yield tuple(some[0][name] for name in ORDER), entry


def _header(
    identity: ServerIdentity, file: str, offset: int, schema: TableSchema | None, event: str, row: Mapping[str, Any]
) -> dict[str, Any]:
    at = row.get(TS)
    return {
        "logfileName": file,
        "logfileOffset": offset,
        "serverId": identity.server_id,
        "executeTime": (at - _UNIX_EPOCH) // timedelta(milliseconds=1) if at else None,
        "schemaName": schema.database if schema else None,
        "tableName": schema.table if schema else None,
        "eventType": event,
        "gtid": row.get(GTID),
    }


def _row_data(schema: TableSchema, row: Mapping[str, Any]) -> dict[str, Any]:
    marks = row[ABSENT] or CELL_HERE * len(schema.columns)
    inserted = row[OP] == "c"
    columns = [
        _column(schema, index, row, mark, inserted=inserted) for index, mark in enumerate(marks) if mark != CELL_ABSENT
    ]
    before: Sequence[dict[str, Any]] = columns if row[OP] == "d" else []
    return {"beforeColumns": before, "afterColumns": [] if row[OP] == "d" else columns}


def _column(schema: TableSchema, index: int, row: Mapping[str, Any], mark: str, *, inserted: bool) -> dict[str, Any]:
    column = schema.columns[index]
    value = row[column.name]
    is_known = mark == CELL_HERE
    updated = True if inserted or not is_known else False if row[OP] == "d" else None
    return {
        "index": index,
        "name": column.name,
        "sqlType": sql_type(column.type),
        "mysqlType": column.type.spelled or None,
        "isKey": column.name in schema.primary_key,
        "updated": updated,
        "isNull": value is None if is_known else None,
        "value": None if value is None else _text(value),
    }


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, bool):
        return str(int(value))  # as the source has it
    return value.hex() if isinstance(value, bytes) else str(value)


def _ddl_entry(ddl: Ddl, identity: ServerIdentity) -> dict[str, Any]:
    words = ddl.statement.upper().split(maxsplit=3)[:2]
    first = words[0] if words else ""
    event = "TRUNCATE" if first == "TRUNCATE" else _STATEMENTS.get((first, words[1] if len(words) > 1 else ""), "QUERY")
    header = _header(identity, ddl.position.file, ddl.position.offset, None, event, {})
    return {
        "header": {**header, "schemaName": ddl.database or None},
        "entryType": "ROWDATA",
        "eventType": event,
        "isDdl": True,
        "sql": ddl.statement,
        "rowDatas": [],
    }


def _file(like: str, number: int) -> str:
    """Return the name of a binlog file from its number and another file of the same server."""
    base, _, digits = like.rpartition(".")
    return str(Position(f"{base}.{number:0{len(digits)}d}", 4).file)


def sql_type(of: SourceType) -> int:
    """Return a column's type as a constant of java.sql.Types."""
    return _INTEGERS[of.width][of.unsigned] if of.family.is_integer else of.family.jdbc
