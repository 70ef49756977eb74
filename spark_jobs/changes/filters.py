"""Applies the predicates of ``filters:`` and routes to changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.manifest import ABSENT, OP
from cdc_lib.model.table_mode import Mode
from spark_jobs.runtime.java_classes import java_classes


def filtered(changes: DataFrame, where: Sequence[str], mode: Mode, table: str) -> DataFrame:
    """Return the changes with rows that do not match all predicates turned into deletes.

    So a row that no longer matches is deleted from the lake, or marked as deleted, or its version is closed. In append mode
    such changes are left out.

    Args:
        changes: in the shape of the lake table.
        where: predicates; NULL is no match, as in any WHERE.
        mode: how the table is merged.
        table: ``database.table``, for messages.

    Raises:
        MergeError: some changes lack cells.
        ConfigError: a predicate cannot be evaluated, or is not deterministic.
    """
    if where and ABSENT in changes.columns:
        raise lacks_columns(table)
    for predicate in where:
        changes = _with(changes, predicate, mode, table)
    return changes


def lacks_columns(table: str) -> MergeError:
    """Return the error of incomplete changes of a table whose rows are filtered."""
    return MergeError(
        "some changes lack columns, so predicates cannot be evaluated for them: a row that the lake left "
        "out cannot be completed from it",
        hint="SET PERSIST binlog_row_image = 'FULL' at the source, and clear binlog_row_value_options; then take a new "
        "snapshot of the table. Or take the predicate out of the source file.",
        table=table,
    )


def _with(changes: DataFrame, predicate: str, mode: Mode, table: str) -> DataFrame:
    try:
        # It is parsed alone: inside other SQL text, the predicate could close a bracket.
        matches = f.coalesce(f.expr(predicate).cast("boolean"), f.lit(False))
        if mode != "append":
            kept = changes.withColumn(OP, f.when(matches, f.col(OP)).otherwise(f.lit(DELETE)))
        else:
            kept = changes.where(matches)
        plan: Any = kept._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way to ask
    except (AnalysisException, ParseException) as error:
        raise _refused(predicate, table, str(error).splitlines()[0]) from error
    if not plan.deterministic() or plan.containsPattern(_subqueries(changes)):
        raise _refused(predicate, table, "its outcome does not follow from the row alone")
    return kept


def _subqueries(changes: DataFrame) -> Any:
    classes = java_classes(changes.sparkSession)
    return classes.static("org.apache.spark.sql.catalyst.trees.TreePattern", "PLAN_EXPRESSION")()


def _refused(predicate: str, table: str, why: str) -> ConfigError:
    return ConfigError(
        f"the predicate {predicate!r} cannot be used: {why}",
        hint="Correct it under filters or routes in the source file: Spark SQL over the columns of the lake table.",
        table=table,
    )
