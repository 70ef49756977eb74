"""Keys of a batch as conditions, so that a merge does not read the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import CHANGE_TYPES, ORDER, LakeColumn, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import OP
from spark_jobs.iceberg.truncated import prunes
from spark_jobs.sql import as_text, literal

FEW_KEYS = 200
"""Most literals of an IN list that Iceberg uses to skip files."""

KEPT = "cdc_kept"
"""A column of the relation of keys: whether the key's last change is no delete."""

BROADCAST_ROWS = 2_000_000
"""Up to this row count, keys and order columns certainly fit into a broadcast."""

INEXACT = frozenset({"float", "double"})
"""Types without conditions: minus zero equals zero in MySQL and Spark, but not in Iceberg's metrics."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of a batch.

    Args:
        rows: number of distinct keys.
        upserts: number of keys that are not deleted.
        inserts: number of keys whose last change is an insert.
        relation: SQL relation of the keys with their order columns, and :data:`KEPT`.
        conditions: pairs of a column and its SQL condition.
    """

    rows: int
    upserts: int
    inserts: int
    relation: str
    conditions: tuple[tuple[str, str], ...]

    def within(self, relation: str) -> str:
        """Return the conditions on a relation's columns, each with ``AND`` in front."""
        return "".join(f" AND {relation}.{quoted(column)} {holds}" for column, holds in self.conditions)


def same_key(key: Sequence[str], relation: str = "t") -> str:
    """Return the condition that rows of ``s`` and of a relation have one key."""
    return " AND ".join(f"s.{quoted(name)} = {relation}.{quoted(name)}" for name in key)


def key_range(session: SparkSession, view: str, table: LakeTable) -> KeyRange:
    """Return the keys of collapsed changes: few as literals, many by their bounds."""
    key = _key(table)
    order = [LakeColumn(name, CHANGE_TYPES[name]) for name in ORDER]
    texts = ", ".join(as_text(quoted(column.name), column.type) for column in (*key, *order))
    rows = session.sql(f"SELECT {texts}, {quoted(OP)} FROM {view} LIMIT {FEW_KEYS + 1}").collect()
    if len(rows) > FEW_KEYS:
        return _bounds(session, view, table)
    upserts, inserts = sum(row[-1] != DELETE for row in rows), sum(row[-1] == INSERT for row in rows)
    relation = _values(rows, [*key, *order]) if rows else view
    return KeyRange(len(rows), upserts, inserts, relation, _each(rows, key))


def _key(table: LakeTable) -> list[LakeColumn]:
    types = {column.name: column.type for column in table.columns}
    return [LakeColumn(name, types[name]) for name in table.primary_key]


def _each(rows: Sequence[Row], key: list[LakeColumn]) -> tuple[tuple[str, str], ...]:
    """Return a condition for each key column, with the values of all keys."""
    conditions = []
    for i, column in enumerate(key):
        if rows and column.type not in INEXACT:
            values = sorted({row[i] for row in rows})
            conditions.append((column.name, f"IN ({', '.join(literal(value, column.type) for value in values)})"))
    return tuple(conditions)


def _values(rows: Sequence[Row], columns: list[LakeColumn]) -> str:
    """Return the keys and order columns as VALUES, which Spark reads without a job."""
    values = ", ".join(
        f"({', '.join(literal(value, column.type) for value, column in zip(row[:-1], columns, strict=True))},"
        f" {str(row[-1] != DELETE).lower()})"
        for row in rows
    )
    return f"(VALUES {values} AS v({', '.join(quoted(column.name) for column in columns)}, {KEPT}))"


def _bounds(session: SparkSession, view: str, table: LakeTable) -> KeyRange:
    key = _key(table)
    ends = [as_text(f"{end}({quoted(column.name)})", column.type) for column in key for end in ("min", "max")]
    kept = f"{quoted(OP)} <> '{DELETE}'"
    counts = f"count(*), count_if({kept}), count_if({quoted(OP)} = '{INSERT}')"
    [facts] = session.sql(f"SELECT {counts}, {', '.join(ends)} FROM {view}").collect()
    conditions = tuple(
        (column.name, f"BETWEEN {literal(low, column.type)} AND {literal(high, column.type)}")
        for column, low, high in zip(key, facts[3::2], facts[4::2], strict=True)
        if column.type not in INEXACT and prunes(table, column.name, low)
    )
    hint = f"/*+ BROADCAST({view}) */" if facts[0] <= BROADCAST_ROWS else ""
    columns = ", ".join(quoted(name) for name in (*(column.name for column in key), *ORDER))
    relation = f"(SELECT {hint} {columns}, {kept} AS {KEPT} FROM {view})"
    return KeyRange(facts[0], facts[1], facts[2], relation, conditions)
