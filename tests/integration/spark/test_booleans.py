"""TINYINT columns that the source file makes booleans: the same in snapshots, changes, re-selected rows and comparisons."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.errors import CdcError, UnsupportedValue
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.reading import opened
from tests.harness.lake.verify import Compared

MODES = ("mirror", "soft_delete", "append", "scd2")


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    """Return what makes a source whose columns ``is_*`` are booleans."""

    def make(other_values="error", **settings):
        rule = {"tables": "*.*", "columns": ["is_*"], "other_values": other_values}
        modes = [{"tables": f"{database}.{mode}", "mode": mode} for mode in MODES]
        return Compared(any_server, database, tmp_path, lake, **{"booleans": [rule], "modes": modes, **settings})

    return make


def create(source, *names, values="(1, 1, 7), (2, 0, 0), (3, NULL, 1)"):
    for name in names:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, is_on TINYINT(1), n TINYINT(1))")
        source.execute(f"INSERT INTO {name} VALUES {values}")
    source.round()
    source.round()


def rows(source, name, *columns):
    return source.lake.rows(f"{source.database}.{name}", *(columns or ("id", "is_on", "n")))


def types(source, name):
    columns = source.lake.state(f"{source.database}.{name}").columns
    return {one.name: one.type for one in columns if not one.name.startswith("_")}


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_booleans_are_the_same_from_snapshots_and_changes_in_all_modes(source, metadata):
    """With names in the binlog and without; and what is read for one row, by verify and by a client, agrees."""
    source = source()
    with row_metadata(source.server, metadata):
        create(source, *MODES)
        for mode in MODES:
            source.execute(f"UPDATE {mode} SET is_on = NOT is_on WHERE id < 3")
            source.execute(f"INSERT INTO {mode} VALUES (4, TRUE, 9)")
        source.round()
        source.minimal(*(f"UPDATE {mode} SET n = 8 WHERE id = 4" for mode in MODES if mode != "append"))
        source.round()
    assert types(source, "mirror") == {"id": "int", "is_on": "boolean", "n": "int"}
    now = [(1, False, 7), (2, True, 0), (3, None, 1), (4, True, 8)]
    assert rows(source, "mirror") == now
    assert len(rows(source, "append")) == 6
    for mode in MODES:
        report = source.table(mode)
        assert (report.clean, [one.name for one in report.uncompared]) == (True, [])
    source.unlogged("UPDATE mirror SET is_on = 0 WHERE id = 4", "UPDATE mirror SET is_on = 5 WHERE id = 2")
    assert source.table("mirror").different == 2
    source.unlogged("UPDATE mirror SET is_on = 1 WHERE id = 2")
    assert source.table("mirror", repair=True).repaired == 1
    assert rows(source, "mirror")[3] == (4, False, 8)
    with opened(source.lake) as reader:
        assert reader.table(f"{source.database}.mirror").get(1)["is_on"] is False


def test_another_value_stops_the_window_by_default(source):
    """No value is lost: neither in a snapshot nor in a change; and the error says what to set."""
    source = source()
    create(source, "t")
    source.execute("UPDATE t SET is_on = -1 WHERE id = 1")
    with pytest.raises(CdcError, match="column is_on: -1 is neither 0 nor 1") as refused:
        source.drain()
    assert "other_values: as_true" in refused.value.hint
    requests.resnapshot(source.capture.pipeline, [f"{source.database}.t"], by="test", why="test")
    with pytest.raises(UnsupportedValue, match="is neither 0 nor 1"):
        source.drain()


def test_every_other_value_is_true_if_the_source_file_says_so(source):
    source = source("as_true", verify={"after_merge": 1000})
    create(source, "t", values="(1, 2, 0), (2, 0, 0)")
    source.execute("UPDATE t SET is_on = -1 WHERE id = 2")
    checked = source.checked("t")
    assert (checked.compared, checked.wrong, rows(source, "t")) == (1, 0, [(1, True, 0), (2, True, 0)])
    assert source.table("t").clean


def test_an_added_boolean_has_its_default_in_older_rows(source):
    """A default that is no boolean makes the table be read again, so that the value is seen."""
    source = source("as_true")
    create(source, "t")
    source.execute("ALTER TABLE t ADD COLUMN is_new TINYINT(1) NOT NULL DEFAULT 1")
    source.execute("INSERT INTO t VALUES (4, 0, 0, 0)")
    source.round()
    assert rows(source, "t", "id", "is_new") == [(1, True), (2, True), (3, True), (4, False)]
    source.execute("ALTER TABLE t ADD COLUMN is_odd TINYINT(1) NOT NULL DEFAULT 5")
    source.execute("INSERT INTO t VALUES (5, 0, 0, 0, 0)")
    for _ in range(3):
        source.round()
    assert rows(source, "t", "id", "is_odd") == [(1, True), (2, True), (3, True), (4, True), (5, False)]
    assert source.table("t").clean


def test_another_choice_for_a_lake_table_that_exists_reads_it_again(source):
    """Without a person: all rows have the other type then."""
    create(source(booleans=[]), "t")
    source = source()
    source.execute("UPDATE t SET n = 2 WHERE id = 1")
    for _ in range(3):
        source.round()
    assert rows(source, "t") == [(1, True, 2), (2, False, 0), (3, None, 1)]
    assert types(source, "t")["is_on"] == "boolean"
