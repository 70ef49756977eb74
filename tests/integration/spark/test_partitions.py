"""Statements on partitions: those that move rows about change nothing, those that take or bring rows make a new snapshot."""

from __future__ import annotations

import pytest

from tests.harness.capture import row_metadata
from tests.harness.ddl_source import Followed

PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
HARMLESS = (
    "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (30), PARTITION p3 VALUES LESS THAN (40))",
    "ALTER TABLE t REORGANIZE PARTITION p2, p3 INTO (PARTITION p9 VALUES LESS THAN MAXVALUE)",
    "ALTER TABLE t REBUILD PARTITION p0, p1",
    "ALTER TABLE t ANALYZE PARTITION ALL",
    "ALTER TABLE t CHECK PARTITION p0",
    "ALTER TABLE t OPTIMIZE PARTITION p0",
    "ALTER TABLE t REPAIR PARTITION p1",
    "ALTER TABLE t REMOVE PARTITIONING",
    "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 4",
    "ALTER TABLE t COALESCE PARTITION 2",
    "ALTER TABLE t ADD PARTITION PARTITIONS 1",
    f"ALTER TABLE t {PARTS}",
)
LOSSY = (
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE t DROP PARTITION p0",
    "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x",
    "FLUSH TABLES",  # a window in which nothing of it happens
)


@pytest.fixture(params=["FULL", "MINIMAL"])
def source(request, any_server, database, tmp_path, lake):
    """A table in two partitions, which the lake has, one like it without a key, and one to be exchanged."""
    with row_metadata(any_server, request.param):
        source = Followed(any_server, database, tmp_path, lake)
        source.run(
            f"CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) {PARTS}",
            "CREATE TABLE x (id INT PRIMARY KEY, v VARCHAR(20))",
            f"CREATE TABLE list (id INT, v VARCHAR(20)) {PARTS}",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (11, 'c'), (12, 'd')",
            "INSERT INTO x VALUES (13, 'e')",
            "INSERT INTO list VALUES (1, 'a'), (11, 'b')",
        )
        source.round()
        source.assert_equal("t", "x", "list")
        yield source


def test_rows_that_are_moved_between_partitions_stay_as_they_are(source):
    """Twelve statements in one window, with changes between them, and no new snapshot."""
    before = source.capture.pipeline.status().drain.snapshots
    for number, statement in enumerate(HARMLESS):
        source.run(f"UPDATE t SET v = 'v{number}' WHERE id IN (1, 11)", statement)
    source.run("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 'last')")
    source.round()
    source.assert_equal("t")
    assert source.capture.pipeline.status().drain.snapshots == before


def test_a_table_is_resnapshotted_after_a_change_of_partitions(source):
    """By itself, of both tables of an exchange; the list of a table without a key continues with them, and nothing stops."""
    source.run("ALTER TABLE list TRUNCATE PARTITION p0")
    for statement in LOSSY:
        source.run("UPDATE t SET v = 'before' WHERE id = 11", statement, "REPLACE INTO t VALUES (11, 'after')")
        source.round()
    source.round()
    source.assert_equal("t", "x")
    assert [op for (op,) in source.lake_rows("list", "_op")] == ["r", "r", "r", "t"]
    source.run("UPDATE t SET v = 'later' WHERE id = 13", "DELETE FROM x WHERE id = 12")
    source.round()
    source.assert_equal("t", "x")
