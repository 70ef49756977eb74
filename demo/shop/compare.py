"""Compares every row and column of the source with the lake.

Both sides become Arrow tables of the same types: the source by plain SELECT (:mod:`demo.shop.source_rows`), the
lake by PyIceberg. DuckDB joins the two in memory. It never opens a lake table itself: its Iceberg reader gives wrong
results with deletion vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from demo.shop.source_rows import SourceTable, exact, read, table_names

SHOWN = 3
"""Maximum examples of each kind of difference."""


@dataclass(frozen=True)
class TableComparison:
    """The comparison of one table.

    Args:
        table: its name at the source.
        source_rows: rows at the source.
        lake_rows: rows that the lake table represents.
        missing: rows that the source has and the lake lacks.
        extra: rows that the lake has and the source lacks.
        different: rows with the same key and another value in some column.
        wrong_columns: missing or extra columns of the lake table, and columns with a wrong type.
        examples: a few of the rows, as text.
    """

    table: str
    source_rows: int
    lake_rows: int
    missing: int = 0
    extra: int = 0
    different: int = 0
    wrong_columns: tuple[str, ...] = ()
    examples: tuple[str, ...] = field(default=())

    @property
    def differences(self) -> int:
        """Number of differences; 0 means that both are equal."""
        return self.missing + self.extra + self.different + len(self.wrong_columns)


def open_lake(uri: str, warehouse: str, name: str = "lake") -> Catalog:
    """Open a local JDBC catalog; close it, or use it in a ``with`` statement.

    Args:
        uri: ``jdbc:sqlite:<path>?...``, as for Spark.
        warehouse: root of the tables.
        name: the catalog's name in Spark.
    """
    path = uri.removeprefix("jdbc:sqlite:").partition("?")[0]
    return SqlCatalog(name, uri=f"sqlite:///{path}", warehouse=warehouse)


def compare_database(
    options: dict[str, Any], database: str, catalog: Catalog, namespace: str = "", tables: Sequence[str] = ()
) -> list[TableComparison]:
    """Compare all tables of a database, or those named.

    Args:
        options: pymysql's connection options.
        database: schema at the source; it must not change during the comparison.
        catalog: catalog of the lake.
        namespace: namespace of the lake tables; the database's name if empty.
        tables: names; all base tables when empty.
    """
    from pymysql import connect

    with connect(**exact(options)) as connection:
        names = tables or table_names(connection, database)
        return [_compare_one(connection, database, name, catalog, namespace or database) for name in names]


def _compare_one(connection: Any, database: str, name: str, catalog: Catalog, namespace: str) -> TableComparison:
    source = read(connection, database, name)
    try:
        lake = catalog.load_table((namespace, name)).scan().to_arrow()
    except NoSuchTableError:
        rows = source.rows.num_rows
        return TableComparison(name, rows, 0, missing=rows, wrong_columns=("the table is not in the lake",))
    return compare(source, current_rows(lake))


def current_rows(lake: pa.Table) -> pa.Table:
    """Return the current rows of a lake table: not marked as deleted, and current versions only.

    In append mode: the entries after the last reset.
    """
    if "_op" in lake.column_names and "_is_current" not in lake.column_names:
        lake = since_emptied(lake)
    for name, wanted in (("_is_deleted", False), ("_is_current", True)):
        if name in lake.column_names:
            lake = lake.filter(pc.equal(pc.fill_null(lake.column(name), False), wanted))
    return lake


def since_emptied(lake: pa.Table) -> pa.Table:
    """Return the entries of an append table after its last reset."""
    order = ("_epoch", "_binlog", "_offset", "_row")
    rows = lake.select(["_op", *order]).to_pylist()
    order_keys = [tuple(row[name] for name in order) for row in rows]
    last = max((order_key for order_key, row in zip(order_keys, rows, strict=True) if row["_op"] == "t"), default=None)
    return lake if last is None else lake.filter(pa.array([order_key > last for order_key in order_keys], pa.bool_()))


def compare(source: SourceTable, lake: pa.Table) -> TableComparison:
    """Compare the rows of one table; lake columns that begin with ``_`` are metadata columns."""
    wrong, lake, judged = _columns(source, lake)
    if not set(source.key or ("_op",)) <= {*judged, *lake.column_names}:
        rows = source.rows.num_rows
        wrong.append("so rows cannot be distinguished")
        return TableComparison(source.name, rows, lake.num_rows, missing=rows, wrong_columns=tuple(wrong))
    names = [column.name for column in source.columns if column.name in judged]
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("source", _plain(source.rows.select(names)))
        db.register("lake", _plain(lake))
        found = _compare_keyed(db, source, names) if source.key else _compare_multisets(db, names)
    return TableComparison(source.name, source.rows.num_rows, wrong_columns=tuple(wrong), **found)


def _columns(source: SourceTable, lake: pa.Table) -> tuple[list[str], pa.Table, set[str]]:
    """Return problems of the lake's columns, the lake with the source's types, and the comparable columns."""
    wrong = [f"{name} is too many" for name in lake.column_names if not name.startswith("_")
             and name not in {column.name for column in source.columns}]  # fmt: skip
    judged = set()
    for column in source.columns:
        index = lake.schema.get_field_index(column.name)
        if index < 0:
            wrong.append(f"{column.name} is missing")
            continue
        found = lake.schema.field(index).type
        if _narrow(found) != column.type:
            wrong.append(f"{column.name} is {found}, not {column.type}")
            continue
        lake = lake.set_column(index, column.name, lake.column(index).cast(column.type))
        judged.add(column.name)
    return wrong, lake.select([name for name in lake.column_names if name in judged or name == "_op"]), judged


def _narrow(found: pa.DataType) -> pa.DataType:
    """Return the type with 32-bit offsets: PyIceberg returns strings and binaries with 64-bit offsets."""
    if pa.types.is_large_string(found):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(found) else found


def _plain(table: pa.Table) -> pa.Table:
    """Remove the zone of timestamps (both sides are UTC), so that DuckDB needs no time zone data."""
    fields = [
        pa.field(field.name, pa.timestamp("us") if pa.types.is_timestamp(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _compare_keyed(db: duckdb.DuckDBPyConnection, source: SourceTable, names: list[str]) -> dict[str, Any]:
    key = [_quoted(name) for name in source.key]
    on = " AND ".join(f"s.{name} = l.{name}" for name in key)
    others = [name for name in names if name not in source.key]
    unequal = [f"s.{_quoted(name)} IS DISTINCT FROM l.{_quoted(name)}" for name in others] or ["FALSE"]
    db.execute(f"CREATE TEMP TABLE doubled AS SELECT {', '.join(key)}, count(*) AS copies FROM lake GROUP BY ALL")
    (lake_rows,) = _one(db, "SELECT count(*) FROM lake")
    (doubles,) = _one(db, "SELECT CAST(coalesce(sum(copies - 1), 0) AS BIGINT) FROM doubled")
    (missing,) = _one(db, f"SELECT count(*) FROM source s ANTI JOIN lake l ON {on}")
    (extra,) = _one(db, f"SELECT count(*) FROM lake l ANTI JOIN source s ON {on}")
    (different,) = _one(db, f"SELECT count(*) FROM source s JOIN lake l ON {on} WHERE {' OR '.join(unequal)}")
    examples = [
        *_rows(db, "missing in the lake", f"SELECT {', '.join(key)} FROM source s ANTI JOIN lake l ON {on}", missing),
        *_rows(db, "not at the source", f"SELECT {', '.join(key)} FROM lake l ANTI JOIN source s ON {on}", extra),
        *_rows(db, "more than once in the lake", f"SELECT {', '.join(key)} FROM doubled WHERE copies > 1", doubles),
    ]
    shown = 0
    for name, test in zip(others, unequal, strict=False):
        if different and shown < SHOWN:
            select = ", ".join(f"s.{column}" for column in key) + f", s.{_quoted(name)}, l.{_quoted(name)}"
            rows = db.execute(f"SELECT {select} FROM source s JOIN lake l ON {on} WHERE {test} LIMIT 1").fetchall()
            examples += [f"{name} of {row[:-2]!r}: {row[-2]!r} at the source, {row[-1]!r} in the lake" for row in rows]
            shown += len(rows)
    return {
        "lake_rows": lake_rows,
        "missing": missing,
        "extra": extra + doubles,
        "different": different,
        "examples": tuple(examples),
    }


def _compare_multisets(db: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, Any]:
    """Compare a table without a key: inserted rows minus deleted rows must equal the source's rows."""
    columns = ", ".join(_quoted(name) for name in names)
    weight = "CASE _op WHEN 'd' THEN -1 ELSE 1 END"
    db.execute(
        f"CREATE TEMP TABLE surplus AS SELECT {columns}, CAST(sum(w) AS BIGINT) AS n FROM ("
        f"SELECT {columns}, {weight} AS w FROM lake UNION ALL SELECT {columns}, -1 FROM source) GROUP BY ALL HAVING sum(w) <> 0"
    )
    (lake_rows,) = _one(db, f"SELECT CAST(coalesce(sum({weight}), 0) AS BIGINT) FROM lake")
    (missing,) = _one(db, "SELECT CAST(coalesce(sum(-n), 0) AS BIGINT) FROM surplus WHERE n < 0")
    (extra,) = _one(db, "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM surplus WHERE n > 0")
    examples = [
        *_rows(db, "missing in the lake", f"SELECT {columns} FROM surplus WHERE n < 0", missing),
        *_rows(db, "not at the source", f"SELECT {columns} FROM surplus WHERE n > 0", extra),
    ]
    return {"lake_rows": lake_rows, "missing": missing, "extra": extra, "examples": tuple(examples)}


def _one(db: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    row = db.execute(sql).fetchone()
    assert row is not None
    return row


def _rows(db: duckdb.DuckDBPyConnection, what: str, sql: str, count: int) -> list[str]:
    if not count:
        return []
    return [f"{what}: {row!r}"[:500] for row in db.execute(f"{sql} LIMIT {SHOWN}").fetchall()]
