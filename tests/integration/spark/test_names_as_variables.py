"""Names, values and predicates that look like Spark variables are plain text in every step."""

from __future__ import annotations

import os

import pytest

from cdc_lib.model.lexer import quoted
from cdc_lib.model.table_name import TableName
from tests.harness.lake.verify import Compared

LOOKS = ("${HOME}", "${env:HOME}", "${env.HOME}", "${user.name}", "${system:user.name}", "${spark.app.id}", "$HOME")
FILTERED, *COMPARED = TABLES = ("${env.HOME}", "${env:HOME}", "${HOME}", "${user.name}")
"""The first has a predicate, so that verify skips it; two have other modes."""
MODES = {"${env:HOME}": "scd2", "${HOME}": "soft_delete"}


@pytest.fixture
def odd_database(mysql_server, mysql_database):
    """A database whose name looks like a variable."""
    name = f"{mysql_database}${{env:HOME}}"
    mysql_server.execute(f"CREATE DATABASE {quoted(name)}")
    yield name
    mysql_server.execute(f"DROP DATABASE {quoted(name)}")


def create(source, database, table):
    """Make a table whose columns, values and key look like variables too."""
    columns = ", ".join(f"{quoted(name)} VARCHAR(40)" for name in LOOKS)
    source.execute(
        f"CREATE TABLE {quoted(database)}.{quoted(table)} (`${{env:PATH}}` VARCHAR(40) PRIMARY KEY, v VARCHAR(200), {columns})"
    )
    put(source, database, table, "first")


def put(source, database, table, mark):
    """Write rows with such texts as key and cells, with the variable's value, and with the text of the predicate."""
    marks = ", ".join(["%s"] * (len(LOOKS) + 2))
    for key, v in ((f"${{HOME}}{mark}", mark), (f"b{mark}", os.environ["HOME"]), (f"c{mark}", "${env:HOME}")):
        source.execute(f"INSERT INTO {quoted(database)}.{quoted(table)} VALUES ({marks})", (key, v, *LOOKS))


def test_variables_in_names_values_and_predicates_are_not_substituted(
    mysql_server, mysql_database, odd_database, tmp_path, lake
):
    """Tables, columns and cells are unchanged; only the row that the predicate names is left out."""
    source = Compared(
        mysql_server, mysql_database, tmp_path, lake,
        tables={"include": [f"{odd_database}.*"]},
        filters=[{"tables": str(TableName(odd_database, FILTERED)), "where": "v <> '${env:HOME}'"}],
        modes=[{"tables": str(TableName(odd_database, name)), "mode": mode} for name, mode in MODES.items()],
    )  # fmt: skip
    for table in TABLES:
        create(source, odd_database, table)
    source.round()
    for table in TABLES:
        put(source, odd_database, table, "second")
        full = f"{quoted(odd_database)}.{quoted(table)}"
        source.execute(f"UPDATE {full} SET `${{user.name}}` = '${{env:USER}}' WHERE v = 'first'")
        source.execute(f"DELETE FROM {full} WHERE `${{env:PATH}}` = 'bfirst'")
        source.execute(f"ALTER TABLE {full} ADD COLUMN `${{new}}` VARCHAR(20) DEFAULT '${{env:HOME}}'")
        put_one = f"INSERT INTO {full} (`${{env:PATH}}`, v) VALUES ('third', 'x')"
        source.execute(put_one)
    source.round()
    tables = {row.tableName for row in lake.spark.sql(f"SHOW TABLES IN lake.{quoted(odd_database)}").collect()}
    assert tables == set(TABLES)
    for table in TABLES:
        whole = lake.spark.table(f"lake.{quoted(odd_database)}.{quoted(table)}")
        assert {*LOOKS, "${env:PATH}", "${new}"} <= set(whole.columns)
        state = whole.where("NOT _is_deleted") if "_is_deleted" in whole.columns else whole
        state = state.where("_is_current AND _op <> 'd'") if "_is_current" in whole.columns else state
        rows = {row["${env:PATH}"]: row.asDict() for row in state.collect()}
        left_out = set() if table == FILTERED else {"cfirst", "csecond"}
        assert set(rows) == {"${HOME}first", "${HOME}second", "bsecond", "third", *left_out}
        assert rows["bsecond"]["v"] == os.environ["HOME"]
        assert [rows["${HOME}second"][name] for name in LOOKS] == list(LOOKS)
        assert {rows[key]["v"] for key in left_out} <= {"${env:HOME}"}
        assert rows["${HOME}first"]["${user.name}"] == "${env:USER}"
        assert {row["${new}"] for row in rows.values()} == {"${env:HOME}"}
    report = {one.table.table: one for one in source.report().tables}
    assert set(report) == set(TABLES)
    assert [report[name].skipped for name in COMPARED] == [""] * len(COMPARED)
    assert [name for name in COMPARED if not report[name].clean] == []
    assert "filter" in report[FILTERED].skipped
