"""Values that rows have in columns that were added after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql.functions import expr

from cdc_lib.model.lake_table import LAKE_FILE, LakeColumn
from cdc_lib.model.manifest import EPOCH, OFFSET
from cdc_lib.model.table_commit import Filled
from spark_jobs.sql import belongs, point, quoted, struct, text_literal


def column_of(one: Filled, columns: Iterable[LakeColumn]) -> LakeColumn | None:
    """Return the lake's column that is filled; None while it has none of that name."""
    return next((column for column in columns if column.name.lower() == one.column.lower()), None)


def filled_value(column: LakeColumn, fills: Iterable[Filled], value: str, relation: str = "") -> str:
    """Return an expression for a cell, with what it has if its row is of before the column.

    Args:
        column: of the lake.
        fills: of its table, in order; those of other columns change nothing.
        value: expression for the cell as it is.
        relation: of the row's own columns; empty where there is one alone.
    """
    for one in fills:
        if one.column.lower() == column.name.lower():
            value = f"CASE WHEN {_rows(one, relation)} THEN {_literal(one, column)} ELSE {value} END"
    return value


def filled_columns(fills: Sequence[Filled], columns: Iterable[LakeColumn]) -> dict[str, Column]:
    """Return the columns of a frame of changes whose cells are filled."""
    names = {one.column.lower() for one in fills}
    return {
        column.name: expr(filled_value(column, fills, quoted(column.name)))
        for column in columns
        if column.name.lower() in names
    }


def update_sql(table: str, one: Filled, column: LakeColumn, where: str = "") -> str:
    """Return the UPDATE that fills standing rows, of these those of a condition; empty for all."""
    name = quoted(column.name)
    some = [where] if where else []
    some += [f"{name} IS NOT NULL"] if one.value is None else []
    return f"UPDATE {table} SET {name} = {_literal(one, column)} WHERE {' AND '.join((_rows(one), *some))}"


def _rows(one: Filled, relation: str = "") -> str:
    whose = belongs(one.columns, relation)
    return " AND ".join((f"{struct((EPOCH, LAKE_FILE, OFFSET), relation)} < {point(one.before)}", *whose))


def _literal(one: Filled, column: LakeColumn) -> str:
    value = "NULL" if one.value is None else text_literal(one.value)
    return f"CAST({value} AS {column.type})"
