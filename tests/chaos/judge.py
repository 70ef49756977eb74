"""Compares every row of source and lake, also if changes of tables without a key were read more than once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pymysql import connect

from demo.shop.compare import TableComparison, compare, compare_database, since_emptied
from demo.shop.source_rows import exact, read, table_names

POSITION = ("_binlog", "_offset", "_row")
TOO_MANY = " is too many"
ServerOf = Callable[[int], int]
"""Returns the number of the server of an epoch."""


def compare_all(
    options: dict[str, Any], database: str, catalog: Catalog, server_of: ServerOf, *, repeated: bool
) -> list[TableComparison]:
    """Compare all tables of a database; a column that the source dropped stays in the lake.

    Args:
        options: pymysql's connection options.
        database: schema at the source; it must not change meanwhile.
        catalog: the lake's.
        server_of: distinguishes positions of different servers.
        repeated: whether a server's binlog was read more than once: then equal changes of a table without a key
            at one position count once.
    """
    tables = _compared(options, database, catalog, server_of, repeated=repeated)
    return [
        replace(table, wrong_columns=tuple(name for name in table.wrong_columns if not name.endswith(TOO_MANY)))
        for table in tables
    ]


def _compared(
    options: dict[str, Any], database: str, catalog: Catalog, server_of: ServerOf, *, repeated: bool
) -> list[TableComparison]:
    if not repeated:
        return compare_database(options, database, catalog)
    with connect(**exact(options)) as connection:
        tables = {name: read(connection, database, name) for name in table_names(connection, database)}
    keyed = [name for name, table in tables.items() if table.key]
    comparisons = compare_database(options, database, catalog, tables=keyed)
    for name, table in tables.items():
        if not table.key:
            comparisons.append(
                compare(table, each_once(catalog.load_table((database, name)).scan().to_arrow(), server_of))
            )
    return comparisons


def each_once(lake: pa.Table, server_of: ServerOf) -> pa.Table:
    """Return the rows of the last snapshot, and each later change once."""
    lake = since_emptied(lake)
    rows, seen, snapshot = lake.select(["_op", "_epoch", *POSITION]).to_pylist(), set(), (0, 0, 0)
    for row in rows:
        if row["_op"] == "r":
            snapshot = max(snapshot, (server_of(row["_epoch"]), row["_binlog"], row["_offset"]))
    kept = []
    for row in rows:
        position = (server_of(row["_epoch"]), *(row[name] for name in POSITION))
        kept.append(row["_op"] == "r" or (position[:3] >= snapshot and (row["_op"], position) not in seen))
        seen.add((row["_op"], position))
    return lake.filter(pc.equal(pa.array(kept, pa.bool_()), True))
