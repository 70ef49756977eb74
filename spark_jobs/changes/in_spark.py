"""Rows in Arrow as an expression of the source file makes them, which is Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lib.apply.fills import Fill
from cdc_lib.model.lake_table import LakeColumn, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT
from cdc_lib.model.table_commit import Filled
from cdc_lib.model.table_mode import Mode
from spark_jobs.changes.computed import written_rows
from spark_jobs.changes.filters import filtered, lacks_columns
from spark_jobs.runtime.arrow import frame_of, rows_of_frame
from spark_jobs.sql import text_literal


def filtered_here(
    session: SparkSession,
    changes: pa.Table,
    columns: Sequence[LakeColumn],
    where: Sequence[str],
    mode: Mode,
    table: str,
) -> pa.Table:
    """Return changes in Arrow as :func:`spark_jobs.changes.filters.filtered` makes them.

    Args:
        session: a Spark session.
        changes: in the columns of the lake table, with ``_absent``.
        columns: of the lake table.
        where: predicates.
        mode: how the table is merged.
        table: ``database.table``, for messages.

    Raises:
        MergeError: some changes lack cells.
        ConfigError: a predicate cannot be evaluated, or is not deterministic.
    """
    if not where or not changes.num_rows:
        return changes
    absent = changes.schema.field(ABSENT)
    if changes.column(ABSENT).null_count < changes.num_rows:
        raise lacks_columns(table)
    rows = changes.drop_columns([ABSENT])
    rows = _changed(session, rows, columns, lambda frame: filtered(frame, where, mode, table)).cast(rows.schema)
    return rows.append_column(absent, pa.nulls(rows.num_rows, absent.type))


def with_computed_here(session: SparkSession, rows: pa.Table, table: LakeTable) -> pa.Table:
    """Return rows with the values of the lake table's computed columns, which follow from the others."""
    if not table.computed or not rows.num_rows:
        return rows
    made = _changed(session, rows, table.columns, lambda frame: written_rows(frame, table))
    return made.cast(pa.schema([rows.schema.field(name) for name in made.column_names]))


def fills_here(
    session: SparkSession, rules: Sequence[Filled], columns: Sequence[LakeColumn], fields: Sequence[pa.Field]
) -> list[Fill]:
    """Return fills of columns of a lake table, with the values that Spark reads from their texts.

    Args:
        session: a Spark session.
        rules: in order.
        columns: of the lake table.
        fields: the same columns in Arrow.
    """
    types = {column.name.lower(): column.type for column in columns}
    by_name = {field.name.lower(): field for field in fields}
    known = [(rule, by_name[rule.column.lower()]) for rule in rules if rule.column.lower() in by_name]
    if not known:
        return []
    texts = ("NULL" if rule.value is None else text_literal(rule.value) for rule, _ in known)
    casts = [
        f"CAST({text} AS {types[field.name.lower()]}) AS value_{number}"
        for number, (text, (_, field)) in enumerate(zip(texts, known, strict=True))
    ]
    values = rows_of_frame(session.range(1).selectExpr(*casts))
    return [
        Fill(rule, field.name, value[0].cast(field.type))
        for (rule, field), value in zip(known, values.columns, strict=True)
    ]


def _changed(
    session: SparkSession, rows: pa.Table, columns: Sequence[LakeColumn], change: Callable[[DataFrame], DataFrame]
) -> pa.Table:
    types = {one.name: one.type for one in columns}
    named = ", ".join(f"{quoted(name)} {types.get(name, 'string')}" for name in rows.column_names)
    return rows_of_frame(change(frame_of(session, rows, named)))
