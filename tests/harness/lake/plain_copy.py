"""A copy of a lake table that plain statements of Spark write: what files Iceberg's own writers make of the rows of each merge."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit

from cdc_lib.model.lake_table import ORDER, LakeTable
from cdc_lib.model.layout import SortField
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_mode import Mode
from tests.harness.lake.batches import table
from tests.harness.lake.running import Lake

_VIEW = "cdc_plain_copy"


class PlainCopy:
    """Follows a lake table.

    Args:
        lake: both tables are there.
        name: ``database.table`` that is followed.
        copy: ``database.table`` of the copy, which does not exist yet.
        mode: of both.
    """

    def __init__(self, lake: Lake, name: str, copy: str, mode: Mode) -> None:
        self._lake, self._name, self._copy, self._mode = lake, name, copy, mode
        self._before: LakeTable | None = None

    def follow(self, columns: Mapping[str, SourceType]) -> None:
        """Delete the rows that the table has no more, and insert those that it has now, by one statement each.

        Args:
            columns: of the source.
        """
        lake, spark, now = self._lake, self._lake.spark, self._lake.state(self._name)
        target, schema = lake.target(self._copy), table(self._copy, dict(columns))
        if self._before is None:
            target.create(schema, self._mode, layout=now.layout)
        else:
            target.evolve(schema)
        new, old = self._rows(now, now), self._rows(self._before, now)
        removed, added = old.exceptAll(new), new.exceptAll(old)
        if not removed.isEmpty():
            removed.createOrReplaceTempView(_VIEW)
            same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in removed.columns)
            spark.sql(
                f"DELETE FROM {lake.name(self._copy)} AS t WHERE EXISTS (SELECT 1 FROM {_VIEW} AS s WHERE {same})"
            )
        if not added.isEmpty():
            order = now.layout.sort_by or [SortField(name) for name in now.primary_key or ORDER]
            rows = added.coalesce(1).sortWithinPartitions(*map(_sorted_by, order))
            writer = rows.writeTo(lake.name(self._copy)).option("fanout-enabled", "true")
            writer.option("distribution-mode", "none").append()
        self._before = now

    def _rows(self, at: LakeTable | None, now: LakeTable) -> DataFrame:
        """Return the rows of a state in the columns of another one."""
        name = self._lake.name(self._name)
        if at is None or at.snapshot_id is None:
            return self._lake.spark.table(name).where("false")
        rows = self._lake.spark.sql(f"SELECT * FROM {name} VERSION AS OF {at.snapshot_id}")
        for column in now.columns:
            if column.name not in rows.columns:
                rows = rows.withColumn(column.name, lit(None).cast(column.type))
        return rows.selectExpr(
            *(f"CAST({quoted(one.name)} AS {one.type}) AS {quoted(one.name)}" for one in now.columns)
        )


def _sorted_by(field: SortField) -> Column:
    column = col(quoted(field.column))
    if field.descending:
        return column.desc_nulls_first() if field.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if field.nulls_first else column.asc_nulls_last()
