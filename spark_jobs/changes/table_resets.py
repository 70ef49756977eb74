"""Append-mode entries that void all earlier rows: a TRUNCATE, a DROP, a CREATE OR REPLACE, or a new snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lib.model.lake_table import CHANGE_TYPES, LakeColumn
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, GTID, OFFSET, OP, ROW, TS
from cdc_lib.model.table_mode import RESET, STATEMENT_ROW, TableReset
from spark_jobs.sql import struct, text_literal


def entries(
    session: SparkSession, resets: Iterable[TableReset], columns: Sequence[LakeColumn], constants: Mapping[str, str]
) -> DataFrame | None:
    """Return one row for each reset, in the shape of a frame of changes; None without resets.

    Args:
        session: the Spark session.
        resets: the resets.
        columns: the lake table's columns; the source's columns are null.
        constants: columns that identify the source table, and their values.
    """
    selects = [_select(one, columns, constants) for one in resets]
    return session.sql(" UNION ALL ".join(selects)) if selects else None


def _select(one: TableReset, columns: Sequence[LakeColumn], constants: Mapping[str, str]) -> str:
    values = {
        EPOCH: str(one.epoch),
        BINLOG: str(one.file),
        OFFSET: str(one.offset),
        ROW: str(STATEMENT_ROW),
        TS: _timestamp(one.at),
        GTID: text_literal(one.gtid) if one.gtid else "NULL",
    }
    values |= {name.lower(): text_literal(value) for name, value in constants.items()}
    cells = [
        f"CAST({values.get(c.name.lower(), 'NULL')} AS {c.type}) AS {quoted(c.name)}" for c in columns if c.name != OP
    ]
    return f"SELECT CAST('{RESET}' AS {CHANGE_TYPES[OP]}) AS {quoted(OP)}, {', '.join(cells)}"


def _timestamp(at: datetime | None) -> str:
    return "NULL" if at is None else f"timestamp_micros({int(at.timestamp() * 1_000_000)})"


def since_reset(table: str, conditions: Iterable[str]) -> str:
    """Return the condition of the changes after the last reset.

    Args:
        table: SQL relation of the append table.
        conditions: conditions of the source table's rows.
    """
    order = struct((EPOCH, BINLOG, OFFSET, ROW))
    last = " AND ".join((f"{quoted(OP)} = '{RESET}'", *conditions))
    return f"coalesce({order} > (SELECT max({order}) FROM {table} WHERE {last}), true)"
