"""Scans of the rows that a condition selects. DuckDB evaluates it, batch by batch, so that the order of keys stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from cdc_lib.apply.engine import connect
from cdc_lib.errors import ConfigError
from cdc_lib.lake.predicates import fault_of
from cdc_lib.read.table import TableReader


def scan_where(
    reader: TableReader,
    where: str,
    start: Any = None,
    stop: Any = None,
    columns: Iterable[str] | None = None,
    *,
    limit: int | None = None,
    **options: bool,
) -> pa.RecordBatchReader:
    """Stream the rows of a range of keys that a condition selects, in key order.

    Only ``start`` and ``stop`` keep files from being read.

    Args:
        reader: of the table.
        where: a condition in DuckDB's SQL on the columns of the lake table; they are named without case.
        start: as in :meth:`TableReader.scan`.
        stop: as there.
        columns: names of the columns; None for all. The condition may name others.
        limit: how many rows at most.
        options: ``prefix``, ``include_stop``, ``reverse`` and ``deleted``, as in :meth:`TableReader.scan`.

    Raises:
        ConfigError: the condition cannot be used; or as in :meth:`TableReader.scan`.
        StoreError: a file cannot be read; also raised while the rows are read.
    """
    return _filtered(reader, where, columns, limit, lambda read: reader.scan(start, stop, read, **options))


def rows_where(reader: TableReader, where: str, columns: Iterable[str]) -> pa.RecordBatchReader:
    """Stream the rows that a condition selects, in no order: also deleted ones and past versions, where the table keeps them.

    Arguments and errors are as in :func:`scan_where`.
    """
    return _filtered(reader, where, columns, None, reader.rows)


def _filtered(
    reader: TableReader,
    where: str,
    columns: Iterable[str] | None,
    limit: int | None,
    read: Callable[[list[str]], pa.RecordBatchReader],
) -> pa.RecordBatchReader:
    schema = reader.schema
    chosen = list(schema.names if columns is None else columns)
    named = _named(where, schema.names)
    rows = read([*chosen, *(name for name in named if name not in chosen)])
    result = pa.schema([schema.field(name) for name in chosen])
    connection = connect()
    connection.execute("SET TimeZone = 'UTC'")
    statement = f"SELECT (({where})) IS TRUE AS kept FROM rows"  # noqa: S608 - the condition is one expression
    _try(connection, statement, rows.schema.empty_table())
    return pa.RecordBatchReader.from_batches(result, _selected(connection, statement, rows, chosen, limit))


def _named(where: str, names: Iterable[str]) -> list[str]:
    """Return the columns that a condition names.

    Raises:
        ConfigError: it is not one condition on these columns.
    """
    names = list(names)
    if fault := fault_of(where, names, "duckdb"):
        raise _refused(where, fault)
    parsed = sqlglot.parse_one(f"SELECT 1 WHERE {where}", dialect="duckdb")
    used = {one.name.lower() for one in parsed.find_all(exp.Column)}
    if parsed.find(exp.Star):
        raise _refused(where, "it names all columns at once")
    return [name for name in names if name.lower() in used]


def _try(connection: duckdb.DuckDBPyConnection, statement: str, empty: pa.Table) -> None:
    """Refuse what DuckDB cannot evaluate before any row is read."""
    connection.register("rows", empty)
    try:
        connection.sql(statement).to_arrow_table()
    except duckdb.Error as error:
        raise _refused(statement, str(error).splitlines()[0]) from error


def _selected(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    rows: pa.RecordBatchReader,
    chosen: list[str],
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in rows:
        if left == 0:
            return
        connection.register("rows", pa.table(batch))
        try:
            kept = connection.sql(statement).to_arrow_table().column(0)
        except duckdb.Error as error:
            raise _refused(statement, str(error).splitlines()[0]) from error
        found = batch.filter(kept.combine_chunks()).select(chosen).slice(0, left)
        left = None if left is None else left - found.num_rows
        yield found


def _refused(where: str, why: str) -> ConfigError:
    return ConfigError(
        f"the condition of the scan cannot be used: {why}",
        hint="Write one condition in DuckDB's SQL, such as: state = 'sent' AND total > 100",
        condition=where,
    )
