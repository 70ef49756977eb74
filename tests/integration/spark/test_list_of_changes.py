"""A list of changes, folded up to now, is what the source has: also after statements that change all rows at once."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import tables_of
from spark_jobs.merging.run import merge
from tests.harness.lake.verify import Compared

ROWS = "(1, 'a', '2026-01-01 10:00:00.6'), (2, 'b', '2026-01-02 10:00:00.4'), (2, 'b', '2026-01-02 10:00:00.4')"
STATEMENTS = (
    ("INSERT INTO {t} VALUES (3, 'c', NULL)", "ALTER TABLE {t} ADD COLUMN n INT DEFAULT 7"),
    ("INSERT INTO {t} VALUES (4, 'd', NULL, 8)", "DELETE FROM {t} WHERE id = 1", "UPDATE {t} SET v = 'z' WHERE id = 2"),
    ("ALTER TABLE {t} DROP COLUMN n", "DELETE FROM {t} WHERE id = 4"),
    ("ALTER TABLE {t} ADD COLUMN n INT", "UPDATE {t} SET v = 'y' WHERE id = 3"),
    ("INSERT INTO {t} VALUES (5, 'e', '2026-01-05 10:00:00.7', 1)", "ALTER TABLE {t} MODIFY at DATETIME"),
    ("DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} VALUES (6, 'f', NULL, 2)"),
    ("TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (7, 'g', NULL, 3)"),
    ("ALTER TABLE {t} ADD COLUMN m VARCHAR(9) NOT NULL DEFAULT 'x'",),
    ("DROP TABLE {t}",),
    ("CREATE TABLE {t} (id INT{key}, v VARCHAR(9), at DATETIME(6))", "INSERT INTO {t} VALUES (8, 'h', NULL)"),
    ("RENAME TABLE {t} TO {t}_was", "CREATE TABLE {t} LIKE {t}_was", "INSERT INTO {t} VALUES (9, 'i', NULL)"),
)


class Listed(Compared):
    """Two lists of changes: of a table without a key, and of one with a key and the mode append."""

    def __init__(self, server, database, folder, lake):
        modes = [{"tables": f"{database}.keyed*", "mode": "append"}]
        super().__init__(server, database, folder, lake, modes=modes)
        for table, key in (("list", ""), ("keyed", ", extra INT AUTO_INCREMENT PRIMARY KEY")):
            self.execute(f"CREATE TABLE {table} (id INT, v VARCHAR(9), at DATETIME(6){key})")
            self.execute(f"INSERT INTO {table} (id, v, at) VALUES {ROWS}")

    def assert_equal(self, *tables):
        for table in tables:
            found = self.table(table)
            assert (found.skipped, found.missing, found.extra, found.different, found.in_flight) == ("", 0, 0, 0, 0)
            assert found.source_rows == found.lake_rows == self.execute(f"SELECT COUNT(*) FROM {table}")[0][0]

    def ops(self, table):
        order = ("_epoch", "_binlog", "_offset", "_row")
        return "".join(op for *_, op in sorted(self.lake.rows(f"{self.database}.{table}", *order, "_op")))


@pytest.fixture
def listed(any_server, database, tmp_path, lake):
    return Listed(any_server, database, tmp_path, lake)


def _of(table):
    """Return the statements for a table."""
    for some in STATEMENTS:
        found = [one.format(t=table, key="") for one in some]
        if table == "keyed":  # its key fills itself
            found = [_keyed(one) for one in found]
        yield found


def _keyed(statement):
    if statement.startswith("CREATE TABLE keyed ("):
        return statement.replace("id INT,", "extra INT AUTO_INCREMENT PRIMARY KEY, id INT,")
    if statement.startswith("INSERT"):
        values = statement.partition("VALUES (")[2].count(",")
        return statement.replace("VALUES", f"({', '.join(('id', 'v', 'at', 'n')[: values + 1])}) VALUES")
    return statement


@pytest.mark.parametrize("table", ["list", "keyed"])
def test_an_append_table_adds_up_to_the_source_after_each_statement(listed, table):
    """ADD COLUMN with a default, TRUNCATE, DROP, CREATE, RENAME, and a MODIFY that changes values."""
    listed.round()
    for statements in _of(table):
        for statement in statements:
            listed.execute(statement)
        for _ in range(3):
            listed.round()
        if not statements[-1].startswith("DROP TABLE"):
            listed.assert_equal(table)
    # MODIFY, TRUNCATE, DROP, and the RENAME that took the table away.
    assert listed.ops(table).count("t") == 4
    assert listed.ops(table).startswith("rrr")


def test_an_append_table_adds_up_to_the_source_when_all_comes_at_once(listed):
    """In one window and one merge, which is merged again."""
    listed.round()
    for statements in _of("list"):
        for statement in statements:
            if "MODIFY" not in statement:
                listed.execute(statement)
    _round_twice(listed)
    listed.assert_equal("list")
    assert listed.ops("list").count("t") == 3


def _round_twice(listed):
    pipeline = listed.capture.pipeline
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    plan = pipeline.plan_merge(by="test")
    assert plan is not None
    config, store = listed.capture.config, listed.capture.store
    assert tables_of(load_plan(store, plan))
    for _ in range(2):
        merge(listed.lake.spark, config, plan, store, listed.lake.said.append)
    pipeline.ack_lake(by="test")


def test_a_reset_entry_has_its_time_and_position(listed):
    """Its own columns are null; what stood before it stays."""
    listed.round()
    listed.execute("TRUNCATE TABLE list")
    listed.round()
    name = f"{listed.database}.list"
    rows = listed.lake.rows(name, "_op", "id", "v", "at", "_row", "_ts", "_offset", "_gtid")
    ((_, *own, row, at, offset, gtid),) = (row for row in rows if row[0] == "t")
    assert (own, row) == ([None, None, None], -2)
    assert at is not None
    assert offset > 4
    assert gtid
    assert sum(row[0] == "r" for row in rows) == 3


def test_create_or_replace_is_an_entry(mariadb_server, mariadb_database, tmp_path, lake):
    """A plain CREATE is none: there was no such table."""
    listed = Listed(mariadb_server, mariadb_database, tmp_path, lake)
    listed.round()
    listed.execute("CREATE OR REPLACE TABLE list (id INT, v VARCHAR(9))")
    listed.execute("INSERT INTO list VALUES (1, 'new')")
    listed.round()
    listed.assert_equal("list")
    assert listed.ops("list") == "rrrtc"


def test_a_new_snapshot_is_an_entry_followed_by_its_rows(listed):
    """Also where nothing was written since the one before: both are read at one place."""
    listed.round()
    for _ in range(2):
        requests.resnapshot(listed.capture.pipeline, [f"{listed.database}.list"], by="test", why="to see")
        for _ in range(3):
            listed.round()
        listed.assert_equal("list")
    listed.execute("INSERT INTO list VALUES (4, 'd', NULL)")
    requests.resnapshot(listed.capture.pipeline, [f"{listed.database}.list"], by="test", why="to see")
    for _ in range(3):
        listed.round()
    listed.assert_equal("list")
    assert listed.ops("list") == "trrrtrrrr"


@pytest.mark.parametrize("rows", ["", "INSERT INTO {t} VALUES (3, 1.5)"])
def test_a_list_whose_column_has_another_type_begins_again_after_a_drop_and_create(listed, rows):
    """Also if no row comes after the CREATE: then nothing but the statements removes the former ones."""
    listed.execute("CREATE TABLE other (k INT, v DATE)")
    listed.execute("INSERT INTO other VALUES (1, '2024-01-01'), (2, NULL)")
    listed.round()
    for statement in (
        "ALTER TABLE other DROP COLUMN v, ADD COLUMN v DECIMAL(10,2)",
        "UPDATE other SET k = 7",
        "DROP TABLE other",
        "CREATE TABLE other (k INT, v DECIMAL(10,2))",
        *([rows.format(t="other")] if rows else []),
    ):
        listed.execute(statement)
    for _ in range(3):
        listed.round()
    assert listed.ops("other").rpartition("t")[2] == "c" * bool(rows)
