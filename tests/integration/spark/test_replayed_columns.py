"""Columns that are added with a default, when a later epoch reads the statement again."""

from __future__ import annotations

import secrets

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.model.cursor import DRAIN
from tests.harness.lake.verify import Compared

MODES = {"m": "mirror", "s": "soft_delete", "h": "scd2", "l": "append"}


@pytest.fixture
def source(any_server, tmp_path, lake):
    database = f"replayed_{secrets.token_hex(4)}"
    any_server.execute(f"CREATE DATABASE {database}")
    modes = [{"tables": f"{database}.{name}", "mode": mode} for name, mode in MODES.items()]
    source = Compared(any_server, database, tmp_path, lake, modes=modes, reselect={"mode": "never"})
    for name in MODES:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20))")
        source.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    source.round()
    yield source
    any_server.execute(f"DROP DATABASE {database}")


def on_all(source, *statements):
    for statement in statements:
        for name in MODES:
            source.execute(statement.format(t=name))


def rows(source, name):
    found = source.lake.spark.sql(f"SELECT * FROM lake.{source.database}.{name}").collect()
    return sorted((row.asDict() for row in found), key=repr)


@pytest.mark.parametrize("default", ["NOT NULL DEFAULT 7", "NULL"])
def test_a_replayed_default_leaves_rows_that_have_the_column_as_they_are(source, default):
    """In `scd2` the replayed changes are ignored, in `append` they are more rows; neither restores what a default replaces."""
    begin = source.capture.pipeline.cursors.load(source.capture.config.source, DRAIN).position
    on_all(
        source,
        "UPDATE {t} SET v = 'x' WHERE id = 3",
        "ALTER TABLE {t} ADD COLUMN n INT " + default,
        "UPDATE {t} SET n = 9 WHERE id = 1",
        "INSERT INTO {t} VALUES (4, 'd', 5)",
    )
    source.round()
    before = {name: rows(source, name) for name in MODES}
    requests.rewind(source.capture.pipeline, StartAt(position=str(begin)), by="test", why="read again")
    on_all(source, "UPDATE {t} SET v = 'later' WHERE id = 2")
    source.round()
    current = {1: 9, 2: 7 if "7" in default else None, 3: 7 if "7" in default else None, 4: 5}
    assert {row["id"]: row["n"] for row in rows(source, "m")} == current
    assert {row["id"]: row["n"] for row in rows(source, "s") if not row["_is_deleted"]} == current
    versions = rows(source, "h")
    assert {row["id"]: row["n"] for row in versions if row["_is_current"]} == current
    ends = {row["id"]: row for row in versions if row["_epoch"] == 1 and not row["_is_current"] and row["id"] == 2}
    kept = [row for row in versions if row["_epoch"] == 1 and row["id"] not in ends]
    assert kept == [row for row in before["h"] if row["id"] not in ends]
    assert [row for row in rows(source, "l") if row["_epoch"] == 1] == before["l"]
    replayed = [(row["id"], row["v"], row["n"]) for row in rows(source, "l") if row["_epoch"] > 1]
    assert sorted(replayed, key=repr) == sorted(
        [(3, "x", current[3]), (1, "a", 9), (4, "d", 5), (2, "later", current[2])], key=repr
    )
