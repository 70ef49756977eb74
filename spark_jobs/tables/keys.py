"""The keys of a batch, and the conditions by which they keep a merge from reading the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.batch import OP
from cdc_lib.model.lake import LakeColumn, LakeTable
from spark_jobs.sql import as_text, literal, quoted

FEW_KEYS = 200
"""Up to so many constants Iceberg looks at when it leaves out files."""

BROADCAST_ROWS = 2_000_000
"""Keys and orders of so many rows fit into a broadcast without doubt."""

INEXACT = frozenset({"float", "double"})
"""Types whose text may not give back the value; no condition is made of them."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Which keys a batch touches.

    Args:
        rows: distinct keys.
        upserts: those among them that stand afterwards.
        conditions: pairs of a column and what holds of it, ready for SQL.
    """

    rows: int
    upserts: int
    conditions: tuple[tuple[str, str], ...]

    def within(self, relation: str) -> str:
        """Return the conditions on a relation's columns, each with ``AND`` in front."""
        return "".join(f" AND {relation}.{quoted(column)} {holds}" for column, holds in self.conditions)

    def hint_of(self, relation: str) -> str:
        """Return the hint that sends a relation of the changes to every executor."""
        return f"/*+ BROADCAST({relation}) */" if self.rows <= BROADCAST_ROWS else ""


def same_key(key: Sequence[str]) -> str:
    """Return the condition that rows of ``s`` and ``t`` have one key."""
    return " AND ".join(f"s.{quoted(name)} = t.{quoted(name)}" for name in key)


def key_range(session: SparkSession, view: str, table: LakeTable) -> KeyRange:
    """Look at the collapsed changes once: how many, and between which keys."""
    types = {column.name: column.type for column in table.columns}
    key = [LakeColumn(name, types[name]) for name in table.primary_key]
    bounds = [as_text(f"{end}({quoted(column.name)})", column.type) for column in key for end in ("min", "max")]
    upserts = f"count_if({quoted(OP)} <> '{DELETE}')"
    rows, stay, *ends = session.sql(f"SELECT count(*), {upserts}, {', '.join(bounds)} FROM {view}").first() or ()
    exact = [(column, ends[2 * i], ends[2 * i + 1]) for i, column in enumerate(key) if column.type not in INEXACT]
    if 0 < rows <= FEW_KEYS:
        return KeyRange(rows, stay, _each(session, view, [column for column, _, _ in exact]))
    between = [
        (c.name, f"BETWEEN {literal(low, c.type)} AND {literal(high, c.type)}") for c, low, high in exact if rows
    ]
    return KeyRange(rows, stay, tuple(between))


def _each(session: SparkSession, view: str, key: list[LakeColumn]) -> tuple[tuple[str, str], ...]:
    """Name every key; one column after the other, which holds for keys of several columns as well."""
    if not key:
        return ()
    found = session.sql(f"SELECT {', '.join(as_text(quoted(c.name), c.type) for c in key)} FROM {view}").collect()
    conditions = []
    for i, column in enumerate(key):
        values = sorted({row[i] for row in found})
        conditions.append((column.name, f"IN ({', '.join(literal(value, column.type) for value in values)})"))
    return tuple(conditions)
