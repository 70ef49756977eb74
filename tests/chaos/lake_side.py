"""The lake in a Spark that keeps running: merges, maintenance and comparisons that are not killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession

from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.model.backfill import BackfillRequest
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.lake_upkeep import Maintained
from cdc_lib.model.lexer import quoted
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.verify import Report
from cdc_lib.pipeline import Pipeline
from cdc_lib.read import Lake as ReadLake
from cdc_lib.reselect.rows import Reselector
from cdc_lib.store.cuts import last_cut
from cdc_lib.verify.whole.tables import Verifier
from spark_jobs.backfill import backfill
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.merging.checksums import SparkLakeSums
from spark_jobs.merging.run import merge, needs_spark, run
from spark_jobs.runtime.session import spark_session
from spark_jobs.sql import full_name
from tests.chaos.shapes import TABLES
from tests.harness.lake.reading import assert_table_reads_as_spark, collected

GETS = 20
"""Rows of each table that are read one by one."""


@dataclass
class LakeSide:
    """The lake of one source.

    Args:
        pipeline: of the source.
        stack: stops the Spark.
        events: counts what happens.

    Attributes:
        plans: every plan that a merge was started for.
    """

    pipeline: Pipeline
    stack: ExitStack
    events: Counter[str]
    plans: list[MergePlan] = field(default_factory=list)
    _spark: SparkSession | None = None

    def merge(self, plan: MergePlan) -> None:
        """Merge a plan; a plan without changes needs no Spark."""
        config, store = self.pipeline.config, self.pipeline.store
        batches = load_plan(store, plan)
        if needs_spark(config, store, batches):
            origin = partial(Reselector.of, self.pipeline) if config.reselect.is_on else None
            merge(self.spark(), config, plan, store, self._noted, batches=batches, origin=origin)
        else:
            run(config, plan, store)

    def tables(self) -> list[str]:
        """Return the source tables that the lake has."""
        cut = last_cut(self.pipeline.store, self.pipeline.config.source)
        return sorted({one.table for one in cut.tables}) if cut is not None else []

    def name(self, table: str) -> str:
        """Return the full name of a source table's lake table, for SQL."""
        return full_name(lake_merges(self.pipeline.config, [table])[0].name)

    def maintain(self, tables: Sequence[str]) -> list[Maintained]:
        """Maintain the lake tables of some source tables."""
        config, store = self.pipeline.config, self.pipeline.store
        names = lake_tables(config, last_cut(store, config.source), tables)
        return maintain(self.spark(), config, store, names, lambda _: None)

    def backfill(self, request: BackfillRequest) -> None:
        """Merge archived batches again; rows of a copy must equal the table's rows of the same changes.

        Rows of snapshot chunks are not compared: all rows of a chunk have one position.
        """
        pipeline, spark = self.pipeline, self.spark()
        backfill(spark, pipeline.config, pipeline, request, lambda _: None)
        for table in request.tables if request.into == "copy" else ():
            lake = lake_merges(pipeline.config, [table])[0].name
            live, side = full_name(lake), full_name(replace(lake, name=lake.name + request.suffix))
            if not spark.catalog.tableExists(side):
                continue
            # Tables with DDL are not compared: their copies have the columns and versions as of the requested time.
            if table.partition(".")[2] not in TABLES:
                self._compare_copy(live, side)
            spark.sql(f"DROP TABLE {side} PURGE")

    def _compare_copy(self, live: str, side: str) -> None:
        spark, order = self.spark(), ", ".join(ORDER)
        known = f"SELECT * FROM {side} WHERE _row >= 0 AND ({order}) IN (SELECT {order} FROM {live})"
        columns = ", ".join(map(quoted, spark.table(side).columns))
        wrong = spark.sql(f"({known}) EXCEPT ALL (SELECT {columns} FROM {live})").collect()
        assert not wrong, f"{side}: {wrong[:5]}"
        self.events["rows of copies compared"] += spark.table(side).count()

    def verify(self, tables: Sequence[str]) -> Report:
        """Let the product compare tables with their source."""
        pipeline = self.pipeline
        lake = SparkLakeSums(self.spark(), pipeline.config.source)
        verifier = Verifier(pipeline, lake)
        return verifier.run(tables, pipeline.config.verify, lambda _: None)

    def read_by_key(self, tables: Sequence[str], keyless: Collection[str]) -> None:
        """Compare what the reading client returns with Spark's rows: gets, many keys at once, scans both ways and versions.

        Args:
            tables: source tables.
            keyless: names of those without a key.
        """
        with ReadLake.open(self.pipeline.config, store=self.pipeline.store) as lake:
            for table in tables:
                rows = collected(self.spark().sql(f"SELECT * FROM {self.name(table)}"))
                has_key = table.partition(".")[2] not in keyless
                assert_table_reads_as_spark(lake.table(table), rows, has_key, GETS)
                self.events["rows read by key"] += len(rows) if has_key else 0

    def _noted(self, line: str) -> None:
        """Count the tables with re-selected rows."""
        if "re-selected" in line:
            self.events["merges of a table with re-selected rows"] += 1

    def spark(self) -> SparkSession:
        """Return the Spark session, which is started once."""
        if self._spark is None:
            self._spark = self.stack.enter_context(spark_session(self.pipeline.config))
        return self._spark
