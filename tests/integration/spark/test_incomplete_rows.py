"""Incomplete rows of tables that became others before the merge read them back: these tables are read again, without a person."""

from __future__ import annotations

from functools import partial

import pytest

from cdc_lib.reselect.rows import Reselector
from cdc_lib.status.overview import status_of
from tests.harness.lake.ddl_source import Followed

MINIMAL = "SET SESSION binlog_row_image = 'MINIMAL'"
LACKS_A_DEFAULT = "INSERT INTO r (id, v) VALUES (2, 2), (3, 3)"
STATEMENTS = {
    "renamed": ("RENAME TABLE r TO s",),
    "renamed and made again": ("RENAME TABLE r TO s", "CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT DEFAULT 9)", "INSERT INTO r VALUES (7, 7, 7)"),
    "swapped": ("CREATE TABLE s LIKE r", "INSERT INTO s VALUES (2, 5, 5)", "RENAME TABLE r TO x, s TO r, x TO s"),
    "dropped": ("DROP TABLE r",),
    "dropped and made again": ("DROP TABLE r", "CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT)", "INSERT INTO r VALUES (2, 5, 5)"),
    "a column dropped": ("ALTER TABLE r DROP COLUMN w",),
    "a column between": ("ALTER TABLE r ADD COLUMN z INT AFTER id",),
    "a column renamed": ("ALTER TABLE r CHANGE w ww INT DEFAULT 3",),
    "another key": ("ALTER TABLE r DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)",),
    "no key": ("ALTER TABLE r DROP PRIMARY KEY",),
}  # fmt: skip


@pytest.fixture(params=["stop", "quarantine"])
def source(request, any_server, database, tmp_path, lake):
    """Two tables in the lake, of which r has rows to come that lack a default."""
    source = Followed(any_server, database, tmp_path, lake, on_error=request.param)
    lake.origin = partial(Reselector.of, source.capture.pipeline)
    source.run(
        "CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT DEFAULT 3)",
        "INSERT INTO r VALUES (1, 1, 1)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    source.round()
    source.run(MINIMAL, LACKS_A_DEFAULT, "INSERT INTO other VALUES (1)")
    return source


def tables_of(source):
    return [name for (name,) in source.capture.execute("SHOW TABLES")]


def rows_of(source, table):
    """Return the rows of a lake table; of a list of changes, those after the last entry that ends all before."""
    order = (
        ("_op", "_epoch", "_binlog", "_offset", "_row")
        if source.lake.state(f"{source.capture.database}.{table}").mode == "append"
        else ()
    )
    rows = source.lake_rows(table, *order, *source.columns(table))
    end = max((row[1:5] for row in rows if order and row[0] == "t"), default=())
    return sorted((row[len(order) :] for row in rows if not order or (row[0] != "t" and row[1:5] > end)), key=repr)


@pytest.mark.parametrize("way", STATEMENTS)
@pytest.mark.parametrize("together", [True, False])
def test_a_table_that_changed_before_its_rows_were_read_back_is_read_again(source, way, together):
    """In the merge of the statement, or in one before it; no round fails, and the tables end as at the source."""
    if together:
        source.run(*STATEMENTS[way])
        source.drain()
    else:
        source.drain()
        source.run(*STATEMENTS[way])
    while source.merge():
        pass
    source.assert_equal("other")
    for number in range(2, 5):
        source.run(f"INSERT INTO other VALUES ({number})")
        source.round()
        source.assert_equal("other")
    drain = status_of(source.capture.pipeline).drain
    assert not drain.quarantined_tables
    assert not drain.tables_to_resnapshot
    for table in tables_of(source):
        assert rows_of(source, table) == source.source_rows(table)


@pytest.mark.parametrize(
    ("columns", "insert"),
    [
        ("id INT, v INT, w INT DEFAULT 3", "INSERT INTO d (id) VALUES (2), (3)"),
        ("id INT NOT NULL DEFAULT 7 PRIMARY KEY, v INT", "INSERT INTO d (v) VALUES (2)"),
    ],
)
def test_an_insert_whose_rows_cannot_be_looked_up_reads_its_table_again(
    any_server, database, tmp_path, lake, columns, insert
):
    """A table without a key, and one whose key took its default: nothing tells which rows are to be read."""
    source = Followed(any_server, database, tmp_path, lake)
    lake.origin = partial(Reselector.of, source.capture.pipeline)
    source.run(
        f"CREATE TABLE d ({columns})",
        "INSERT INTO d VALUES (1, 1)" if "PRIMARY" in columns else "INSERT INTO d VALUES (1, 1, 1)",
    )
    source.run("CREATE TABLE other (id INT PRIMARY KEY)")
    source.round()
    source.run(MINIMAL, insert, "INSERT INTO other VALUES (1)")
    source.round()
    source.assert_equal("other")
    for _ in range(2):
        source.run("REPLACE INTO other VALUES (2)")
        source.round()
    source.assert_equal("other")
    assert rows_of(source, "d") == source.source_rows("d")
