"""Computed columns in Spark: their types, and their values in rows that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit, when

from cdc_lib.errors import ConfigError
from cdc_lib.model.lake_table import LakeColumn, LakeTable
from cdc_lib.model.lake_types import LAKE_TYPES
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import OP
from cdc_lib.model.table_mode import RESET


def computed_types(
    session: SparkSession, computed: Mapping[str, str], columns: Sequence[LakeColumn], lake_table: str
) -> dict[str, str]:
    """Return the types of computed columns, by Spark's analysis of their expressions.

    Args:
        session: a Spark session.
        computed: expressions by column.
        columns: of the source, as in the lake.
        lake_table: for messages.

    Raises:
        ConfigError: an expression cannot be analysed, is not deterministic, or has a type that lake columns do not have.
    """
    empty = session.range(0).selectExpr(*(f"CAST(NULL AS {one.type}) AS {quoted(one.name)}" for one in columns))
    found = {}
    for name, expression in computed.items():
        try:
            frame = empty.select(expr(expression).alias(name))
            plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way to ask
        except (AnalysisException, ParseException) as error:
            raise _refused(name, expression, str(error).splitlines()[0], lake_table) from error
        kind = frame.schema[0].dataType.simpleString()
        if not plan.deterministic():
            raise _refused(name, expression, "its value does not follow from the row alone", lake_table)
        if kind.partition("(")[0] not in LAKE_TYPES:
            why = f"its type is {kind}, which no lake column has; CAST(... AS ...) gives it another"
            raise _refused(name, expression, why, lake_table)
        found[name] = kind
    return found


def _refused(name: str, expression: str, why: str, lake_table: str) -> ConfigError:
    return ConfigError(
        f"the computed column {name} ({expression!r}) cannot be used: {why}",
        hint="Correct it under computed in the source file: deterministic Spark SQL over the columns of the row.",
        lake_table=lake_table,
        column=name,
    )


def written_rows(rows: DataFrame, table: LakeTable) -> DataFrame:
    """Return the columns of rows that are written to a lake table; computed ones follow from the others.

    An entry of an append table that says that all rows were removed is no row: it has no values.
    """
    if not table.computed:
        # One call of Java in place of one for each column, which a merge of small tables would feel.
        return rows.selectExpr(*(quoted(column.name) for column in table.columns))
    computed = {name.lower(): expression for name, expression in table.computed.items()}
    written: list[Column] = []
    for column in table.columns:
        expression = computed.get(column.name.lower())
        if expression is None:
            written.append(col(quoted(column.name)))
            continue
        value = expr(expression).cast(column.type)  # parsed alone: inside other SQL text it could close a bracket
        if table.mode == "append":
            value = when(col(OP) != lit(RESET), value)
        written.append(value.alias(column.name))
    return rows.select(*written)
