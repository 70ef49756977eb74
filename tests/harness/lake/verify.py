"""A captured database and its lake, compared by the product itself; the source can also be changed without the binlog."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.model.changed_rows import AfterMerge, ChangedRows
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.reselect.rows import Reselector
from cdc_lib.source import Source
from cdc_lib.verify.after_merge import check_changed_rows
from cdc_lib.verify.whole.tables import Verifier
from cdc_lib.verify.whole.without_spark import compare, open_lake
from spark_jobs.merging.checksums import SparkLakeSums
from spark_jobs.merging.repair import SparkRepairer
from spark_jobs.merging.run import merge
from tests.harness.binlog.capture import Capture
from tests.harness.lake.rounds import drain_round, merge_round
from tests.harness.lake.running import Lake
from tests.harness.servers import SqlServer


class Compared:
    """One source.

    Args:
        server: a running one.
        database: whose tables are captured.
        folder: for the store.
        lake: a running Spark.
        **settings: sections of the source file.
    """

    def __init__(self, server: SqlServer, database: str, folder: Path, lake: Lake, **settings: Any) -> None:
        self.capture = Capture(server, database, folder, lake=lake.config.lake.model_dump(), **settings)
        self.server, self.database, self.lake = server, database, lake
        self.execute = self.capture.execute
        self.said: list[str] = []
        self.unread: dict[TableName, str] = {}

    def round(self) -> None:
        """Plan, drain, ack, merge, ack."""
        self.drain()
        self.merge()

    def drain(self) -> None:
        """Plan, drain, ack."""
        drain_round(self.capture)

    def merge(self) -> None:
        """Merge what is drained, and ack it."""
        merge_round(self.capture, self.lake)

    def merge_and_check(
        self, between: Callable[[], None] = lambda: None, config: SourceConfig | None = None
    ) -> AfterMerge | None:
        """Merge what is drained, compare the rows that it changed, and ack it.

        Args:
            between: done after the merge and before the comparison.
            config: of the comparison; the source's own without.
        """
        capture, pipeline = self.capture, self.capture.pipeline
        plan = pipeline.plan_merge(by="test")
        if plan is None:
            return None
        merge(self.lake.spark, capture.config, plan, capture.store, self.lake.said.append)
        between()
        found = check_changed_rows(replace(pipeline, config=config or capture.config))
        pipeline.ack_lake(by="test")
        return found

    def checked(self, name: str, **settings: Any) -> ChangedRows:
        """Drain and merge, compare the rows that the merge changed, and return what was found in one table."""
        self.drain()
        after = self.merge_and_check(**settings)
        assert after is not None
        assert after.not_checked == ""
        return after.by_table[TableName(self.database, name), f"lake.{self.database}.{name}"]

    def unlogged(self, *statements: str) -> None:
        """Change the source without writing to the binlog."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute(f"USE {self.database}")
            for statement in statements:
                cursor.execute(statement)
            connection.commit()

    def minimal(self, *statements: str) -> None:
        """Change the source with row images that have only what changed."""
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
            cursor.execute(f"USE {self.database}")
            for statement in statements:
                cursor.execute(statement)
            connection.commit()

    def report(
        self,
        *patterns: str,
        sleep: Callable[[float], None] = time.sleep,
        repair: bool = False,
        spark: bool = False,
        **settings: Any,
    ) -> Report:
        """Compare the tables that match patterns, or all, as ``cdc verify`` does.

        Args:
            *patterns: of tables.
            sleep: waits for some seconds.
            repair: whether wrong rows are repaired, which reads the lake with Spark.
            spark: whether Spark reads all tables of the lake, and not only those that need it.
            **settings: of ``verify``.
        """
        config, credentials = self.capture.config, Credentials(self.server.cdc_user, self.server.cdc_password)
        source = Source.over(config, self.capture.store, credentials)
        chosen = config.verify.model_copy(update={"wait": timedelta(0), **settings})
        by_spark = Verifier(
            source, SparkLakeSums(self.lake.spark, config.source), self._repairer() if repair else None, sleep
        )  # fmt: skip
        if spark or repair:
            return by_spark.run(patterns, chosen, self.said.append)
        lake = open_lake(config)
        found = compare(source, lake, patterns, chosen, self.said.append, sleep)
        lake.catalog.close()
        self.unread = found.unread
        if not found.unread:
            return found.report
        return found.joined(by_spark.run(list(found.unread), chosen, self.said.append))

    def _repairer(self) -> SparkRepairer:
        capture = self.capture
        return SparkRepairer(self.lake.spark, capture.config, capture.store, Reselector.of(capture.pipeline))

    def table(self, name: str, **settings: Any) -> TableReport:
        """Compare one table."""
        (report,) = self.report(f"{self.database}.{name}", **settings).tables
        return report
