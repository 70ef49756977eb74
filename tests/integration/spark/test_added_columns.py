"""Columns that are added with a value: the lake's existing rows follow."""

from __future__ import annotations

import pytest

from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.ddl_source import Followed


@pytest.fixture(params=["FULL", "MINIMAL"])
def source(request, any_server, database, tmp_path, lake):
    with row_metadata(any_server, request.param):
        source = Followed(any_server, database, tmp_path, lake)
        source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))")
        source.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        source.round()
        yield source


def test_a_literal_is_filled_in_without_reading_the_table(source):
    """In existing rows, in rows of the same window before it, and in those that a partial image completes."""
    before = source.snapshots()
    source.run(
        "INSERT INTO t VALUES (4, 'd')",
        "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 7, ADD COLUMN s VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'new'",
        "UPDATE t SET n = 8 WHERE id = 2",
        "INSERT INTO t (id, v, n, s) VALUES (5, 'e', 1, NULL)",
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE t SET v = 'partly' WHERE id IN (1, 4)",
        "DELETE FROM t WHERE id = 3",
    )
    source.round(twice=True)
    source.assert_equal("t")
    source.run("ALTER TABLE t ADD COLUMN late DECIMAL(6,2) DEFAULT 1.5, ADD COLUMN nothing INT")
    source.round(twice=True)
    source.run("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE t SET v = 'later' WHERE id = 1")
    source.round()
    source.assert_equal("t")
    assert source.snapshots() == before


def test_a_column_that_is_added_again_is_filled_again(source):
    """Whatever the lake kept of the one before."""
    source.run("ALTER TABLE t ADD COLUMN n INT DEFAULT 7, ADD COLUMN e INT", "UPDATE t SET n = id, e = id")
    source.round()
    source.run(
        "UPDATE t SET e = 6 WHERE id = 3",
        "ALTER TABLE t DROP COLUMN n, DROP COLUMN e",
        "UPDATE t SET v = 'x' WHERE id = 1",
        "ALTER TABLE t ADD COLUMN n INT DEFAULT 9, ADD COLUMN e INT",
    )
    source.run("UPDATE t SET n = 5, e = 8 WHERE id = 2")
    source.round(twice=True)
    source.assert_equal("t")


def test_a_default_of_a_dropped_column_does_not_fill_a_new_one_with_its_name(source):
    """The lake never had the first, and gets the second by a rename."""
    source.run(
        "ALTER TABLE t ADD COLUMN n VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'gone'",
        "ALTER TABLE t DROP COLUMN n",
        "ALTER TABLE t RENAME COLUMN v TO n",
        "UPDATE t SET n = 'x' WHERE id = 1",
    )
    source.round()
    source.assert_equal("t")


def test_what_a_statement_does_not_say_is_read_from_the_server(source):
    """An expression; a column that is computed."""
    source.run(
        "ALTER TABLE t ADD COLUMN at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)", "UPDATE t SET v = 'x' WHERE id = 1"
    )
    source.round()
    source.round()
    source.assert_equal("t")
    source.run("ALTER TABLE t ADD COLUMN twice INT AS (id * 2) STORED")
    source.round()
    source.round()
    source.assert_equal("t")
    source.run("UPDATE t SET v = 'last' WHERE id = 3")
    source.round()
    source.assert_equal("t")


def test_a_tool_that_adds_columns_gives_them_to_all_rows_at_its_swap(source):
    """Some windows after the ALTER of its shadow."""
    source.run(
        "create table `_t_gho` like `t`",
        "alter /* gh-ost */ table `_t_gho` ADD COLUMN n INT NOT NULL DEFAULT 7",
        "INSERT INTO t VALUES (4, 'd')",
    )
    source.round(twice=True)
    source.run(
        "insert ignore into `_t_gho` (id, v) select id, v from t",
        "rename /* gh-ost */ table `t` to `_t_del`, `_t_gho` to `t`",
        "UPDATE t SET v = 'new' WHERE id = 2",
    )
    source.round(twice=True)
    source.assert_equal("t")


def test_values_that_a_statement_changes_are_read(source):
    """They are rounded, padded, or computed again. What holds all values as they are changes nothing."""
    source.run(
        "CREATE TABLE u (id INT PRIMARY KEY, at DATETIME(3), d DECIMAL(9,3), b BINARY(2), g INT AS (id + 1) STORED)",
        "INSERT INTO u (id, at, d, b) VALUES (1, '2026-11-22 01:02:03.567', 1.235, 'ab'), (2, NULL, 2.5, 'c')",
    )
    source.round()
    source.round()
    before = source.snapshots()
    source.run(
        "UPDATE u SET d = 2 WHERE id = 2", "ALTER TABLE u MODIFY d DECIMAL(11,3) NOT NULL, MODIFY at DATETIME(6)"
    )
    source.round()
    source.assert_equal("u")
    assert source.snapshots() == before
    for clause in (
        "MODIFY at DATETIME",
        "MODIFY d DECIMAL(9,1)",
        "MODIFY b BINARY(4), MODIFY g INT AS (id + 2) STORED",
    ):
        source.run("UPDATE u SET d = d + 1 WHERE id = 2", f"ALTER TABLE u {clause}")
        source.round()
        source.round()
        source.assert_equal("u")
    assert source.snapshots() == before + 3


def test_rows_that_an_alter_drops_are_deleted(mariadb_server, mariadb_database, tmp_path, lake):
    """MariaDB's ALTER IGNORE keeps one row of each value of a new key, and tells of none."""
    source = Followed(mariadb_server, mariadb_database, tmp_path, lake)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)")
    source.round()
    source.run("ALTER IGNORE TABLE t ADD UNIQUE (v)")
    source.round()
    source.round()
    source.assert_equal("t")
    assert len(source.lake_rows("t")) == 2
