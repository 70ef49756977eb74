"""Batches that are drained and not merged yet are read with the lake; no Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.read import Lake
from cdc_lib.read.changes import CHANGE, net_changes
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, BatchWriter, Row, at, table
from tests.harness.lake.running import lake_config
from tests.harness.lake.small_lake import SmallLake, row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Source:
    """A source with a lake table and windows that wait."""

    def __init__(self, folder):
        (folder / "catalog.db").touch()
        self.config = lake_config(folder)
        self.store = open_store(self.config.store)
        self.lake = SmallLake(self.config)
        self.batches = BatchWriter(self.store)
        self.drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, at(4))
        self.schema = table(
            "shop.people",
            {"country": TEXT, "id": BIGINT, "name": TEXT, "raw": SourceType("bytes")},
            key=("country", "id"),
        )

    def drained(self, *rows, to=104, **changed):
        """Write one window of changes, and the cursors."""
        self.batches.window(4, to, {self.schema: rows})
        cursors = ObjectCursorStore(self.store)
        cursors.swap(None, replace(self.drain, position=at(to), **changed))
        cursors.swap(None, replace(self.drain, consumer=LAKE))

    def opened(self):
        """Open the lake with the store."""
        return Lake.open(self.config, store=self.store)


@pytest.fixture
def source(tmp_path):
    made = Source(tmp_path)
    made.lake.make("people", [row("de", 1, "Ada"), row("de", 2, "Bo"), row("fr", 1, "Cy")])
    return made


def change(op, offset, country, number, name):
    return Row(op, offset, {"country": country, "id": number, "name": name, "raw": b"x"})


CHANGES = (change("u", 10, "de", 1, "Eve"), change("d", 20, "de", 2, "Bo"), change("c", 30, "at", 9, "Fay"))


def test_waiting_changes_are_applied_in_memory(source):
    """Updates, deletes and inserts; without ``fresh`` the lake alone is read."""
    source.drained(*CHANGES)
    with source.opened() as lake:
        reader, merged = lake.table("shop.people", fresh=True), lake.table("shop.people")
        assert reader.until == (1, 1, 104)
        assert merged.until is None
        names = [(one["country"], one["id"], one["name"]) for one in reader.scan().read_all().to_pylist()]
        assert names == [("at", 9, "Fay"), ("de", 1, "Eve"), ("fr", 1, "Cy")]
        assert reader.get(("de", 2)) is None
        assert merged.get(("de", 2))["name"] == "Bo"
        many = reader.multi_get([("de", 1), ("de", 2), ("at", 9)], ["name"]).to_pylist()
        assert [one["name"] for one in many] == ["Eve", None, "Fay"]
        found = net_changes(merged, reader, ["name"]).to_pylist()
        assert [(one["name"], one[CHANGE]) for one in found] == [("Fay", "insert"), ("Eve", "update"), ("Bo", "delete")]


def test_a_reader_sees_later_batches_after_a_refresh(source):
    """What is drained meanwhile is not seen before."""
    source.drained(*CHANGES)
    with source.opened() as lake:
        reader = lake.table("shop.people", fresh=True)
        source.batches.window(104, 204, {source.schema: [change("u", 110, "fr", 1, "Gil")]})
        cursors = ObjectCursorStore(source.store)
        old = cursors.load("shop", DRAIN)
        cursors.swap(old, replace(old, position=at(204)))
        assert reader.get(("fr", 1))["name"] == "Cy"
        reader.refresh()
        assert reader.get(("fr", 1))["name"] == "Gil"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"snapshots": (SnapshotTask("shop", 1, "s2", "shop", "people"),)}, "a snapshot of it is being read"),
        (
            {
                "quarantine": (
                    QuarantineRecord(TableName("shop", "people"), 1, at(4), at(4), at(4), None, None, NOW, "test"),
                )
            },
            "the table is quarantined, or waits for a new snapshot",
        ),
    ],
    ids=["a snapshot", "quarantine"],
)
def test_tables_that_a_merge_would_leave_out_are_refused(source, changed, message):
    """By the reason."""
    source.drained(*CHANGES, **changed)
    with source.opened() as lake, pytest.raises(MergeError, match=message):
        lake.table("shop.people", fresh=True)


def test_a_fresh_reader_needs_the_store_and_no_cut(source):
    """Each refusal says what to give."""
    with source.opened() as lake:
        with pytest.raises(ConfigError, match="nothing is drained yet"):
            lake.table("shop.people", fresh=True)
        with pytest.raises(ConfigError, match="a cut is a state of the past"):
            lake.table("shop.people", fresh=True, cut=source.lake.cut(1, NOW))
    with (
        Lake.open(source.config) as lake,
        pytest.raises(ConfigError, match="opened without the source's store"),
    ):
        lake.table("shop.people", fresh=True)


def lacking(op, offset, country, number, **values):
    """A change that has its key and some values."""
    absent = frozenset({"name", "raw"} - values.keys())
    return Row(op, offset, {"country": country, "id": number, **values}, absent=absent)


def test_columns_that_changes_lack_are_those_of_the_changes_before_and_of_the_lake(source):
    """The last value of each column counts; a NULL that was assigned stays NULL."""
    source.drained(
        lacking("u", 10, "de", 1, name="Eve"),
        lacking("u", 20, "de", 1, raw=b"new"),
        lacking("u", 30, "fr", 1, name=None),
        lacking("d", 40, "de", 2),
        change("c", 50, "de", 2, "again"),
        lacking("u", 60, "de", 2, raw=b"more"),
    )
    with source.opened() as lake:
        reader = lake.table("shop.people", fresh=True)
        found = [(one["country"], one["id"], one["name"], one["raw"]) for one in reader.scan().read_all().to_pylist()]
    assert found == [("de", 1, "Eve", b"new"), ("de", 2, "again", b"more"), ("fr", 1, None, b"\x00\xff")]


@pytest.mark.parametrize(
    "changes",
    [
        (lacking("u", 10, "at", 9, name="no row"),),
        (lacking("d", 10, "de", 2), lacking("u", 20, "de", 2, name="the row got this key")),
        (lacking("c", 10, "at", 9, name="with a default"),),
        (replace(change("u", 10, "de", 1, "Eve"), unknown=frozenset({"raw"})), lacking("u", 20, "de", 1, name="Eva")),
    ],
    ids=["no row", "a row that moved", "an insert", "a value that the binlog does not contain"],
)
def test_columns_that_nothing_tells_are_refused(source, changes):
    """The source has them, or a row with another key, and the merge asks for them."""
    source.drained(*changes)
    with source.opened() as lake, pytest.raises(MergeError, match="a row has no value of column raw"):
        lake.table("shop.people", fresh=True)
