"""Two tables whose names differ by the place of a dot alone are two tables in every step."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cdc_lib import requests
from cdc_lib.cli.main import app
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables
from tests.harness.binlog.capture import SOURCE
from tests.harness.lake.verify import Compared


class Two(Compared):
    """A source with ``w.`y.z` `` and ``` `w.y`.z ```."""

    def __init__(self, server, database, folder, lake, **settings):
        self.inner, self.outer = TableName(database, "y.z"), TableName(f"{database}.y", "z")
        include = [f"{database}.*", f"`{database}.y`.*"]
        super().__init__(server, database, folder, lake, tables={"include": include}, **settings)

    def on(self, table, statement):
        database, name = (f"`{part}`" for part in table.pair)
        self.execute(statement.format(f"{database}.{name}"))

    def create(self):
        for number, table in enumerate((self.inner, self.outer)):
            self.on(table, "CREATE TABLE {} (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET cp1250)")
            self.on(table, f"INSERT INTO {{}} VALUES (1, 'of {number}'), (2, 'of {number}'), (3, 'of {number}')")

    def ids(self, table):
        """Keys of the lake table's rows."""
        return [row[0] for row in self.lake.rows(table, "id")]

    def assert_equal(self):
        report = self.report()
        assert {one.table.pair for one in report.tables} == {self.inner.pair, self.outer.pair}
        assert [one.table for one in report.tables if not one.clean or one.skipped] == []


@pytest.fixture
def dotted(mysql_server, mysql_database):
    """The database whose name holds a dot."""
    mysql_server.execute(f"CREATE DATABASE `{mysql_database}.y`")
    yield mysql_database
    mysql_server.execute(f"DROP DATABASE IF EXISTS `{mysql_database}.y`")


def test_rows_of_one_stay_out_of_the_other(mysql_server, dotted, tmp_path, lake):
    """A snapshot of each, rows in each, a DELETE and a TRUNCATE in one: both equal their source."""
    source = Two(mysql_server, dotted, tmp_path, lake)
    source.create()
    source.round()
    assert (source.ids(source.inner), source.ids(source.outer)) == ([1, 2, 3], [1, 2, 3])
    source.assert_equal()
    source.on(source.inner, "DELETE FROM {} WHERE id = 1")
    source.on(source.outer, "INSERT INTO {} VALUES (4, 'new')")
    source.round()
    assert (source.ids(source.inner), source.ids(source.outer)) == ([2, 3], [1, 2, 3, 4])
    source.on(source.outer, "TRUNCATE TABLE {}")
    source.on(source.outer, "INSERT INTO {} VALUES (9, 'last')")
    source.on(source.inner, "ALTER TABLE {} ADD COLUMN w INT DEFAULT 7")
    source.round()
    assert (source.ids(source.inner), source.ids(source.outer)) == ([2, 3], [9])
    source.assert_equal()
    config, store = source.capture.config, source.capture.store
    cut = last_cut(store, SOURCE)
    assert {one.table.pair: one.lake_table for one in cut.tables} == {
        source.inner.pair: f"lake.{dotted}.`y.z`",
        source.outer.pair: f"lake.`{dotted}.y`.z",
    }
    [one] = lake_tables(config, cut, [str(source.outer)])
    assert (one.namespace, one.name) == ((f"{dotted}.y",), "z")
    mysql_server.execute(f"DROP DATABASE `{dotted}.y`")
    source.on(source.inner, "INSERT INTO {} VALUES (5, 'continues', 1)")
    source.round()
    dropped = {one.table.pair for one in last_cut(store, SOURCE).tables if one.dropped is not None}
    assert dropped == {source.outer.pair}
    assert source.ids(source.inner) == [2, 3, 5]


def test_one_is_quarantined_and_resnapshotted_without_the_other(mysql_server, dotted, tmp_path, lake):
    """By a fault in its rows, and by the command that asks for its snapshot."""
    source = Two(mysql_server, dotted, tmp_path, lake, on_error="quarantine")
    source.create()
    source.round()
    source.on(source.inner, "INSERT INTO {} VALUES (7, _cp1250 X'6181C462')")
    source.on(source.outer, "INSERT INTO {} VALUES (7, 'good')")
    source.round()
    pipeline = source.capture.pipeline
    cursor = pipeline.cursors.load(SOURCE, DRAIN)
    assert [one.table.pair for one in cursor.quarantined_tables] == [source.inner.pair]
    assert (source.ids(source.inner), source.ids(source.outer)) == ([1, 2, 3], [1, 2, 3, 7])
    source.on(source.inner, "DELETE FROM {} WHERE id = 7")
    record = requests.resume_table(pipeline, str(source.inner), by="test")
    assert record.table.pair == source.inner.pair
    for _ in range(3):
        source.round()
    source.assert_equal()
    source.unlogged(f"DELETE FROM `{dotted}.y`.z WHERE id = 1", f"DELETE FROM `{dotted}`.`y.z` WHERE id = 2")
    [record] = requests.resnapshot(pipeline, [str(source.outer)], by="test", why="rows are wrong")
    assert record.table.pair == source.outer.pair
    for _ in range(3):
        source.round()
    assert (source.ids(source.inner), source.ids(source.outer)) == ([1, 2, 3], [2, 3, 7])


def test_commands_take_names_in_backticks(mysql_server, dotted, tmp_path, lake, monkeypatch):
    """And say with an example how such a name is written."""
    source = Two(mysql_server, dotted, tmp_path, lake)
    source.create()
    source.round()
    folder = tmp_path / "sources"
    folder.mkdir()
    config = source.capture.config.model_dump(mode="json", exclude_unset=True)
    config["server"]["password_env"] = "NAMES_TEST_PASSWORD"
    del config["source"]
    (folder / f"{SOURCE}.yaml").write_text(json.dumps(config))
    monkeypatch.setenv("NAMES_TEST_PASSWORD", mysql_server.cdc_password)

    def cdc(*arguments, code=0):
        result = CliRunner().invoke(app, ["--sources", str(folder), *arguments])
        assert result.exit_code == code, result.output + repr(result.exception)
        return result.output

    source.on(source.inner, "DELETE FROM {} WHERE id < 3")
    source.round()
    assert cdc("lake", "preview", SOURCE, str(source.inner)).count("of 0") == 1
    assert cdc("lake", "preview", SOURCE, str(source.outer)).count("of 1") == 3
    assert "w.`y.z`" in cdc("lake", "preview", SOURCE, f"{dotted}.y.z", code=2)
    said = cdc("snapshot", SOURCE, str(source.outer), "--yes")
    assert str(source.outer) in said
    assert str(source.inner) not in said
    assert "not captured" in cdc("snapshot", SOURCE, f"{dotted}.y.z", "--yes", code=2)
    status = json.loads(cdc("status", SOURCE, "--json"))
    assert str(source.outer) in json.dumps(status, ensure_ascii=False)
