"""Values that a partition by ``truncate`` cannot hold: refused when they are written, because Iceberg would not find their rows again."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import DataFrame

from cdc_lib.lake.layout import lowest_values
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.lexer import quoted
from spark_jobs.errors import refusing_sql
from spark_jobs.sql import literal, text_literal

_LIMIT = " is smaller than {low}, the smallest value that its partition by truncate can hold"
_HINT = (
    "Take another transform under layouts in the source file, run cdc lake maintain (cdc lake drop if the table has no rows yet), and "
    "merge again."
)


def with_values_checked(rows: DataFrame, table: LakeTable) -> DataFrame:
    """Return rows with the table's columns, whose execution fails at a value that a partition cannot hold."""
    lowest = lowest_values(table.layout, table.columns)
    if not lowest:
        return rows
    columns = []
    for column in table.columns:
        name = quoted(column.name)
        if (low := lowest.get(column.name)) is not None:
            message = (
                f"concat({text_literal(f'column {column.name}: ')}, {name}, {text_literal(_LIMIT.format(low=low))})"
            )
            value = f"IF({name} < {literal(low, column.type)}, {refusing_sql(message, _HINT)}, {name})"
            name = f"CAST({value} AS {column.type}) AS {name}"
        columns.append(name)
    return rows.selectExpr(*columns)


def prunes(table: LakeTable, column: str, low: str) -> bool:
    """Whether files may be skipped by a range of a column that begins with this value; its text is exact."""
    lowest = lowest_values(table.layout, table.columns).get(column)
    return lowest is None or Decimal(low) >= Decimal(lowest)
