"""Columns that get a type of another kind: existing rows show other values, of which no event tells, also if no row comes after it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.harness.capture import row_metadata
from tests.harness.ddl_source import Followed

pytestmark = pytest.mark.turns(1)

CASES = {
    "sorted": ("VARCHAR(9)", "'b,a'", "SET('a','b')"),
    "labelled": ("VARCHAR(9)", "'A'", "ENUM('a','b')"),
    "relabelled": ("ENUM('A','b')", "'A'", "ENUM('a','b')"),
    "stripped": ("VARCHAR(9)", "'a '", "CHAR(9)"),
    "clocked": ("VARCHAR(9)", "'1:2:3'", "TIME"),
    "counted": ("INT", "24", "YEAR"),
    "numbered": ("VARCHAR(9)", "'007'", "DECIMAL(60, 1)"),
    "rounded": ("DOUBLE", "1.7", "INT"),
    "cut": ("DECIMAL(20, 2)", "1.75", "INT"),
    "indexed": ("INT", "2", "ENUM('a','b')"),
    "dated": ("INT", "20240102", "DATE"),
    "texted": ("INT", "5", "VARCHAR(9)"),
    "timed": ("TIME(3)", "'1:2:3.5'", "VARCHAR(20)"),
    "yeared": ("YEAR", "2024", "INT"),
    "enumed": ("ENUM('b','a')", "'a'", "TEXT"),
}
ONE_SERVER = {
    "mysql": {"parsed": ("TEXT", """'{"b": 1,  "a": 2}'""", "JSON")},
    "mariadb": {"listed": ("DECIMAL(10, 1)", "1", "SET('1','2')")},
}


def text(value):
    return format(Decimal(str(value)).normalize(), "f") if isinstance(value, float) else str(value)


def lake_texts(source, table):
    """The values that the lake has of a table: those of a table without a key are added up."""
    name = f"{source.capture.database}.{table}"
    if source.lake.state(name).mode == "mirror":
        return [text(value) for (value,) in source.lake.rows(name, "v")]
    rows = source.lake.rows(name, "v", "_op")
    return sorted(text(value) for value, op in rows if op in ("c", "r"))


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_rows_show_the_values_of_the_new_type(any_server, database, tmp_path, lake, metadata, key):
    cases = CASES | ONE_SERVER[any_server.flavor]
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine", start="latest")
        source.round()
        source.run(*(f"CREATE TABLE {table} (id INT{key}, v {old})" for table, (old, _, _) in cases.items()))
        source.round()
        for table, (_, value, new) in cases.items():
            source.run(f"INSERT INTO {table} VALUES (1, {value})", f"ALTER TABLE {table} MODIFY v {new}")
        source.round()
        source.round()
        found = {table: lake_texts(source, table) for table in cases}
        shown = {
            table: [row[0] for row in source.capture.execute(f"SELECT CAST(v AS CHAR) FROM {table}")] for table in cases
        }
        assert found == shown
        assert not source.capture.pipeline.status().drain.quarantined_tables
