"""Statements that change tables are followed into the lake: it equals the source after each of them."""

from __future__ import annotations

import pytest

from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import first_chunk, row_metadata
from tests.harness.lake.ddl_source import Followed


@pytest.fixture(params=["FULL", "MINIMAL"])
def source(request, any_server, database, tmp_path, lake):
    """Two tables with rows, which the lake has."""
    with row_metadata(any_server, request.param):
        source = Followed(any_server, database, tmp_path, lake)
        for name in ("a", "b"):
            source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20))")
            source.run(f"INSERT INTO {name} VALUES (1, '{name}1'), (2, '{name}2'), (3, '{name}3')")
        source.round()
        source.assert_equal("a", "b")
        yield source


def test_truncated_tables_are_empty(source):
    """With rows before it, after it, both, or none at all; several times in a window, and merged twice."""
    source.run(
        "TRUNCATE TABLE a", "INSERT INTO b VALUES (9, 'x')", "TRUNCATE b", "INSERT INTO b VALUES (2, 'y'), (4, 'z')"
    )
    source.round(twice=True)
    source.assert_equal("a", "b")
    assert source.lake_rows("a") == []
    source.run("INSERT INTO a VALUES (1, 'p')", "TRUNCATE a", "INSERT INTO a VALUES (2, 'q')", "TRUNCATE a")
    source.run("TRUNCATE b", "INSERT INTO b VALUES (2, 'r')", "UPDATE b SET id = 5 WHERE id = 2")
    source.round(twice=True)
    source.assert_equal("a", "b")
    assert source.lake_rows("b") == [(5, "r")]


def test_a_row_after_a_truncate_takes_no_cell_from_one_before_it(source):
    """An insert that leaves columns to their defaults does not find the row of its key that is gone."""
    with source.capture.server.connect(database=source.capture.database) as session, session.cursor() as sql:
        sql.execute("TRUNCATE a")
        sql.execute("INSERT INTO a VALUES (1, 'new')")
        sql.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        sql.execute("UPDATE a SET v = NULL WHERE id = 1")
        session.commit()
    source.round()
    source.assert_equal("a")


def dropped(source):
    """Return the tables that the last cut shows as dropped at the source."""
    tables = status_of(source.capture.pipeline).cut.tables
    return [one.table.partition(".")[2] for one in tables if one.dropped is not None]


def test_a_dropped_table_is_kept_until_it_is_created_again(source):
    """By any CREATE; one that does nothing changes nothing."""
    source.run("UPDATE a SET v = 'last' WHERE id = 1", "CREATE TABLE IF NOT EXISTS b (x INT)", "DROP TABLE a")
    source.round(twice=True)
    assert source.lake_rows("a", "id", "v") == [(1, "last"), (2, "a2"), (3, "a3")]
    source.assert_equal("b")
    assert dropped(source) == ["a"]
    source.run("UPDATE b SET v = 'more'")
    source.round()
    assert dropped(source) == ["a"]
    source.run("CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY, v VARCHAR(20), w INT)")
    source.round(twice=True)
    assert source.lake_rows("a", "id", "v") == []
    source.assert_equal("b")
    assert dropped(source) == []
    source.run("INSERT INTO a VALUES (3, 'again', 7)", "CREATE TABLE IF NOT EXISTS a LIKE b")
    source.round(twice=True)
    source.assert_equal("a", "b")
    source.run(
        "DROP TABLE a",
        "CREATE TABLE a LIKE b",
        "DROP TABLE b",
        "CREATE TABLE b (PRIMARY KEY (id)) SELECT 8 AS id, 'x' AS v",
    )
    source.round()
    source.assert_equal("a", "b")
    if source.flavor == "mariadb":
        source.run("INSERT INTO a VALUES (5, 'x')", "CREATE OR REPLACE TABLE a LIKE b", "INSERT INTO a VALUES (6, 'y')")
        source.round()
        source.assert_equal("a", "b")


@pytest.mark.parametrize("end", ["DROP TABLE a", "RENAME TABLE a TO c"])
def test_a_dropped_table_whose_last_changes_do_not_fit_stops_nothing(source, end):
    """It had another primary key: no new snapshot can follow, and the lake keeps what it had."""
    source.run(
        "DROP TABLE a",
        "CREATE TABLE a (id INT, v VARCHAR(20) NOT NULL, PRIMARY KEY (id, v))",
        "INSERT INTO a VALUES (1, 'x'), (1, 'y')",
        "INSERT INTO b VALUES (7, 'x')",
        end,
    )
    source.round(twice=True)
    source.assert_equal("b")
    assert source.lake_rows("a", "id", "v") == [(1, "a1"), (2, "a2"), (3, "a3")]
    assert dropped(source) == ["a"]
    source.run("UPDATE b SET v = 'more'")
    source.round()
    source.assert_equal("b")
    assert dropped(source) == ["a"]
    source.run("CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (5, 'again')")
    source.round(twice=True)
    source.assert_equal("a", "b")


def test_a_database_that_is_created_again_begins_empty(source):
    """All of its tables do, those too that are made where there might be one."""
    database = source.capture.database
    source.capture.server.execute(f"DROP DATABASE {database}")
    source.capture.server.execute(f"CREATE DATABASE {database}")
    source.run("CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY, v VARCHAR(20))", "INSERT INTO a VALUES (7, 'x')")
    source.round(twice=True)
    source.assert_equal("a")
    assert len(source.lake_rows("b", "id", "v")) == 3
    source.run("CREATE TABLE b LIKE a")
    source.round()
    source.assert_equal("a", "b")


def test_a_truncate_during_a_snapshot_removes_its_rows_too(source):
    """Also those of chunks that were read before it, and those that come late."""
    source.run("CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(20))")
    source.run("INSERT INTO c VALUES (1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x')")
    pipeline = source.capture.pipeline
    units = pipeline.plan(by="test")
    facts = source.capture.facts()
    (task,) = [unit for unit in units if getattr(unit, "table", "") == "c"]
    first_chunk(source.capture.reader, task, facts.identity)
    source.run("TRUNCATE c", "INSERT INTO c VALUES (2, 'y'), (9, 'y')")
    for unit in units:
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    source.round()
    source.assert_equal("a", "b", "c")
    source.run("DELETE FROM c WHERE id = 2", "TRUNCATE a")
    source.round()
    source.assert_equal("a", "b", "c")


def test_renamed_tables_are_resnapshotted(source):
    """A swap of two, a chain, and one that was not captured; what is gone stands as it stood."""
    source.run("RENAME TABLE a TO t, b TO a, t TO b", "INSERT INTO a VALUES (7, 'x')")
    source.round()
    source.round()
    source.assert_equal("a", "b")
    source.run(
        "DELETE FROM b WHERE id = 2",
        "CREATE TABLE c (id INT PRIMARY KEY, v VARCHAR(20))",
        "RENAME TABLE a TO d, c TO a",
    )
    source.round()
    source.round()
    source.assert_equal("a", "b", "d")
    source.run(
        "ALTER TABLE b RENAME TO e, ADD COLUMN w INT", "INSERT INTO e VALUES (9, 'e', 1)", "UPDATE a SET v = 'z'"
    )
    source.round()
    source.run("INSERT INTO e VALUES (10, 'e', 2)")
    source.round()
    source.assert_equal("a", "d", "e")
    assert source.lake_rows("b", "id") == [(1,), (3,)]


def test_a_snapshot_waits_for_the_changes_in_front_of_the_swap_that_asked_for_it(source, monkeypatch):
    """A row that comes and goes while the lake lags does not come back: its delete does not count any more."""
    monkeypatch.setattr("cdc_lib.merge.planner._MERGE_WINDOWS", 1)
    source.run("UPDATE a SET v = 'early' WHERE id = 1")
    source.drain()
    source.run("INSERT INTO a VALUES (27, 'comes')", "INSERT INTO b VALUES (27, 'comes')")
    source.drain()
    source.run("DELETE FROM a WHERE id = 27", "RENAME TABLE a TO t, b TO a, t TO b", "DELETE FROM a WHERE id = 27")
    source.drain()
    source.drain()  # the snapshots that the swap asked for
    begun = source.snapshots()
    source.round(twice=True)
    source.assert_equal("a", "b")
    assert source.snapshots() == begun
