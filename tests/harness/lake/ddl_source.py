"""A captured database and its lake, for tests of DDL: one round is one run of the DAG."""

from __future__ import annotations

from typing import Any

from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import Capture
from tests.harness.lake.rounds import drain_round, merge_round


class Followed:
    """A source that is merged into the lake of a running Spark.

    Args:
        server: a running one.
        database: whose tables are captured.
        folder: for the store.
        lake: of the tests of the merge.
        **settings: sections of the source file.
    """

    def __init__(self, server: Any, database: str, folder: Any, lake: Any, **settings: Any) -> None:
        plain = {"lake": lake.config.lake.model_dump(), "snapshot": {"chunk_rows": 2}, **settings}
        self.capture = Capture(server, database, folder, **plain)
        self.lake = lake
        self.flavor = server.flavor

    def run(self, *statements: str) -> None:
        """Run statements at the source, one after the other in one session."""
        with self.capture.server.connect(database=self.capture.database) as session, session.cursor() as sql:
            for statement in statements:
                sql.execute(statement)
            session.commit()

    def drain(self) -> None:
        """Plan, drain and acknowledge."""
        drain_round(self.capture)

    def merge(self, *, twice: bool = False) -> bool:
        """Plan, merge and acknowledge; ``twice`` merges the plan two times before. Returns False if there was no plan."""
        return merge_round(self.capture, self.lake, times=2 if twice else 1)

    def round(self, *, twice: bool = False) -> None:
        """Do what one run of the DAG does."""
        self.drain()
        while self.merge(twice=twice):
            pass

    def snapshots(self) -> int:
        """Return how many snapshots were started."""
        return len(status_of(self.capture.pipeline).drain.snapshots)

    def columns(self, table: str) -> list[str]:
        """Return the names of a source table's columns."""
        return [row[0] for row in self.capture.execute(f"SHOW COLUMNS FROM {table}")]

    def source_rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return the rows of a source table."""
        return sorted((tuple(row) for row in self.capture.execute(f"SELECT * FROM {table}")), key=repr)

    def lake_rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a lake table, by default with the source's columns."""
        return self.lake.rows(f"{self.capture.database}.{table}", *(columns or self.columns(table)))

    def assert_equal(self, *tables: str) -> None:
        """Compare every row and column of tables."""
        assert {t: self.lake_rows(t) for t in tables} == {t: self.source_rows(t) for t in tables}
