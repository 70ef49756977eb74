"""Values of added columns in rows that are older than the column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql.functions import expr

from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET
from cdc_lib.model.table_commit import Filled
from spark_jobs.sql import belongs, point, struct, text_literal


def filled_value(column: LakeColumn, fills: Iterable[Filled], value: str, relation: str = "") -> str:
    """Return an expression for a cell, with the column's default if the row is older than the column.

    Args:
        column: the lake column.
        fills: of its table, in order; those of other columns are ignored.
        value: expression for the stored cell.
        relation: alias of the row's relation; empty if there is only one.
    """
    for one in fills:
        if one.column.lower() == column.name.lower():
            value = f"CASE WHEN {rows_of_fill(one, relation)} THEN {_literal(one, column)} ELSE {value} END"
    return value


def filled_columns(fills: Sequence[Filled], columns: Iterable[LakeColumn]) -> dict[str, Column]:
    """Return the filled columns of a frame of changes."""
    names = {one.column.lower() for one in fills}
    return {
        column.name: expr(filled_value(column, fills, quoted(column.name)))
        for column in columns
        if column.name.lower() in names
    }


def update_sql(table: str, one: Filled, column: LakeColumn, where: str = "") -> str:
    """Return the UPDATE that fills existing rows that match a condition; empty for all."""
    name = quoted(column.name)
    conditions = [where] if where else []
    conditions += [f"{name} IS NOT NULL"] if one.value is None else []
    return f"UPDATE {table} SET {name} = {_literal(one, column)} WHERE {' AND '.join((rows_of_fill(one), *conditions))}"


def rows_of_fill(one: Filled, relation: str = "") -> str:
    """Return the condition of the rows that a default fills."""
    of_table = belongs(one.columns, relation)
    order_key = struct((EPOCH, BINLOG, OFFSET), relation)
    since = () if one.since is None else (f"{order_key} >= {point(one.since)}",)
    return " AND ".join((f"{order_key} < {point(one.before)}", *since, *of_table))


def _literal(one: Filled, column: LakeColumn) -> str:
    value = "NULL" if one.value is None else text_literal(one.value)
    return f"CAST({value} AS {column.type})"
