"""The keys of a batch, and the conditions by which they keep a merge from reading the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.lake_table import CHANGE_TYPES, LAKE_FILE, ORDER, LakeColumn, LakeTable
from cdc_lib.model.manifest import FILE, OP
from spark_jobs.sql import as_text, literal, quoted, struct

FEW_KEYS = 200
"""Up to so many constants Iceberg looks at when it leaves out files."""

BROADCAST_ROWS = 2_000_000
"""Keys and orders of so many rows fit into a broadcast without doubt."""

INEXACT = frozenset({"float", "double"})
"""Types of which no condition is made: minus zero is zero for MySQL and Spark, and not for Iceberg's statistics."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Which keys a batch touches.

    Args:
        rows: distinct keys.
        upserts: those among them that stand afterwards.
        relation: the keys with their orders, ready to stand in FROM.
        conditions: pairs of a column and what holds of it, ready for SQL.
        named: what holds of exactly the rows of these keys, ready for SQL; None where the keys are too many to be named, or
            cannot be.
    """

    rows: int
    upserts: int
    relation: str
    conditions: tuple[tuple[str, str], ...]
    named: str | None = None

    def within(self, relation: str) -> str:
        """Return the conditions on a relation's columns, each with ``AND`` in front."""
        return "".join(f" AND {relation}.{quoted(column)} {holds}" for column, holds in self.conditions)


def same_key(key: Sequence[str]) -> str:
    """Return the condition that rows of ``s`` and ``t`` have one key."""
    return " AND ".join(f"s.{quoted(name)} = t.{quoted(name)}" for name in key)


def key_range(session: SparkSession, view: str, table: LakeTable) -> KeyRange:
    """Look at the collapsed changes: few of them are named one by one, of many the bounds."""
    key = _key(table)
    order = [LakeColumn(name, CHANGE_TYPES[FILE if name == LAKE_FILE else name]) for name in ORDER]
    texts = ", ".join(as_text(quoted(column.name), column.type) for column in (*key, *order))
    found = session.sql(f"SELECT {texts}, {quoted(OP)} FROM {view} LIMIT {FEW_KEYS + 1}").collect()
    if len(found) > FEW_KEYS:
        return _bounds(session, view, key)
    upserts = sum(row[-1] != DELETE for row in found)
    relation = _values(found, [*key, *order]) if found else view
    conditions = _each(found, key)
    return KeyRange(len(found), upserts, relation, conditions, _named(found, key, conditions))


def _key(table: LakeTable) -> list[LakeColumn]:
    types = {column.name: column.type for column in table.columns}
    return [LakeColumn(name, types[name]) for name in table.primary_key]


def _each(found: Sequence[Row], key: list[LakeColumn]) -> tuple[tuple[str, str], ...]:
    """Name every key; one column after the other, which holds for keys of several columns as well."""
    conditions = []
    for i, column in enumerate(key):
        if found and column.type not in INEXACT:
            values = sorted({row[i] for row in found})
            conditions.append((column.name, f"IN ({', '.join(literal(value, column.type) for value in values)})"))
    return tuple(conditions)


def _named(found: Sequence[Row], key: list[LakeColumn], conditions: Sequence[tuple[str, str]]) -> str | None:
    """Name every key as a whole, after the conditions on single columns, by which files are left out."""
    if not found or any(column.type in INEXACT for column in key):
        return None
    named = [f"{quoted(column)} {holds}" for column, holds in conditions]
    if len(key) > 1:
        keys = (", ".join(literal(row[i], column.type) for i, column in enumerate(key)) for row in found)
        named.append(
            f"{struct(tuple(column.name for column in key))} IN ({', '.join(f'struct({one})' for one in keys)})"
        )
    return " AND ".join(named)


def _values(found: Sequence[Row], columns: list[LakeColumn]) -> str:
    """Return the keys and orders as constants: a table of them costs Spark no job."""
    rows = ", ".join(
        f"({', '.join(literal(value, column.type) for value, column in zip(row[:-1], columns, strict=True))})"
        for row in found
    )
    return f"(VALUES {rows} AS v({', '.join(quoted(column.name) for column in columns)}))"


def _bounds(session: SparkSession, view: str, key: list[LakeColumn]) -> KeyRange:
    ends = [as_text(f"{end}({quoted(column.name)})", column.type) for column in key for end in ("min", "max")]
    upserts = f"count_if({quoted(OP)} <> '{DELETE}')"
    [facts] = session.sql(f"SELECT count(*), {upserts}, {', '.join(ends)} FROM {view}").collect()
    conditions = tuple(
        (column.name, f"BETWEEN {literal(low, column.type)} AND {literal(high, column.type)}")
        for column, low, high in zip(key, facts[2::2], facts[3::2], strict=True)
        if column.type not in INEXACT
    )
    hint = f"/*+ BROADCAST({view}) */" if facts[0] <= BROADCAST_ROWS else ""
    columns = ", ".join(quoted(name) for name in (*(column.name for column in key), *ORDER))
    return KeyRange(facts[0], facts[1], f"(SELECT {hint} {columns} FROM {view})", conditions)
