"""``cdc explain``: the event, the window, the merge and the snapshot of each version of a row."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.changed_rows import AfterMerge, ChangedRows
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.read import Lake
from cdc_lib.store.after_merge import keep_after_merge
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.verified import keep
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, BatchWriter, Row, at, table
from tests.harness.lake.small_lake import row

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEY = {"country": "de", "id": 1, "raw": b"x"}


@pytest.fixture
def people(lake):
    """A row that changed in three windows, and a cut after the first two and after all of them."""
    columns = {"country": TEXT, "id": BIGINT, "name": TEXT, "raw": SourceType("bytes")}
    schema = table("shop.people", columns, key=("country", "id"))
    store = open_store(lake.config.store)
    writer = BatchWriter(store)
    for number, op in enumerate("cuu"):
        start = 100 * number or 4
        writer.window(start, 100 * number + 100, {schema: [Row(op, 100 * number + 50, {**KEY, "name": f"n{number}"})]})
    for consumer in (DRAIN, LAKE):
        ObjectCursorStore(store).swap(None, Cursor("shop", consumer, 0, 1, IDENTITY, at(300)))
    made = lake.make("people", [row("de", 1, "n1", 150)], marker=Marker(merged_to=Point(1, 1, 200)))
    first = lake.cut(2, NOON, made)
    reads = [row("fr", 1, "read", 30) | {"_row": -1}, row("at", 1, "read", 300) | {"_row": -1}]
    lake.add(made, reads, Marker(merged_to=Point(1, 1, 300)))
    return first, lake.cut(3, NOON + timedelta(hours=1), made)


def test_each_version_names_its_event_window_cut_and_snapshot(cdc, people):
    """Of a merge of two windows both have the same cut; --limit shows the newest ones."""
    first, second = people
    explained = json.loads(cdc("explain", "shop", "shop.people", "de", 1, "--json").stdout)
    assert (explained["complete_since"], explained["why"]) == (
        "2026-01-01T00:00:00+00:00",
        "earlier batches are not stored",
    )
    newest, middle, oldest = explained["versions"]
    assert newest == {
        "op": "u", "committed": "2026-01-01T00:04:10+00:00", "changed": ["name"], "epoch": 1, "position": "binlog.000001:250", "gtid": None,
        "window": "000001-000001.000000000200-000001.000000000300", "chunk": "", "merge": second.merge_id, "merged_at": "2026-01-31T13:00:00+00:00",
        "lake_snapshot": second.tables[0].lake_snapshot, "checks": [],
    }  # fmt: skip
    for one, window in (
        (middle, "000001.000000000100-000001.000000000200"),
        (oldest, "000001.000000000004-000001.000000000100"),
    ):
        found = (one["window"], one["merge"], one["lake_snapshot"])
        assert found == (f"000001-{window}", first.merge_id, first.tables[0].lake_snapshot)
    shown = cdc("explain", "shop", "shop.people", "de", 1, "--limit", 1)
    assert shown.exit_code == 0
    assert "position      binlog.000001:250" in shown.stdout
    assert "changed       name" in shown.stdout
    assert first.merge_id not in shown.stdout
    assert "all versions are known since 2026-01-01 00:00:00+00:00" in shown.stdout


def test_a_change_after_the_last_cut_has_none(cdc, lake, people):
    """Nor has a removed window a name; a key without versions exits with 1."""
    store = open_store(lake.config.store)
    store.delete([info.key for info in store.list("shop/cuts/") if people[1].merge_id in info.key])
    store.delete([info.key for info in store.list("shop/batches/") if "000000000004-" in info.key])
    newest, *_ = json.loads(cdc("explain", "shop", "shop.people", "de", 1, "--json").stdout)["versions"]
    assert (newest["window"][-12:], newest["merge"], newest["lake_snapshot"]) == ("000000000300", "", None)
    (read,) = json.loads(cdc("explain", "shop", "shop.people", "fr", 1, "--json").stdout)["versions"]
    assert (read["op"], read["window"], read["merge"]) == ("r", "", people[0].merge_id)
    (read,) = json.loads(cdc("explain", "shop", "shop.people", "at", 1, "--json").stdout)["versions"]
    assert (read["position"], read["window"], read["merge"]) == ("binlog.000001:300", "", "")
    result = cdc("explain", "shop", "shop.people", "de", 9)
    assert (result.exit_code, "no version is known" in result.stdout) == (1, True)


def test_a_row_that_a_snapshot_read_names_its_chunk(cdc, lake, people):
    """Instead of the window at whose position it was read."""
    store = open_store(lake.config.store)
    schema = table(
        "shop.people", {"country": TEXT, "id": BIGINT, "name": TEXT, "raw": SourceType("bytes")}, ("country", "id")
    )
    BatchWriter(store).chunk(schema, 130, [{**KEY, "name": "new"}], snapshot="s1")
    low = Point(1, 1, 130)
    mark = SnapshotMark("s1", 1, True, low, low, low)
    lake.add(lake.catalog.load_table(("shop", "people")), [], Marker(merged_to=Point(1, 1, 300), snapshots=(mark,)))
    read = json.loads(cdc("explain", "shop", "shop.people", "de", 1, "--json").stdout)["versions"][2]
    assert (read["op"], read["position"], read["window"]) == ("r", "binlog.000001:130", "")
    assert (read["chunk"], read["merge"]) == ("snapshot-s1-shop.people-000000", people[0].merge_id)
    assert "chunk         snapshot-s1-shop.people-000000" in cdc("explain", "shop", "shop.people", "de", 1).stdout


def test_each_version_names_the_comparisons_that_covered_it(cdc, lake, people):
    """Of the whole table while it was the row's version, and of the rows of its merge."""
    store, (first, second) = open_store(lake.config.store), people
    assert "by no comparison that is stored" in cdc("explain", "shop", "shop.people", "de", 1).stdout
    name, to = TableName("shop", "people"), first.tables[0].lake_table
    for position in (at(200), at(240)):
        compared = TableReport(name, to, source_rows=3, position=position)
        keep(store, Report("shop", 1, position, "", NOON, NOON, (compared,)))
    rows = ChangedRows(name, to, second.merge_id, 1, second.position, "", NOON, changes=9, compared=4, sampled=True)
    keep_after_merge(store, AfterMerge("shop", second.merge_id, NOON, "", (rows,)))
    newest, middle, oldest = json.loads(cdc("explain", "shop", "shop.people", "de", 1, "--json").stdout)["versions"]
    assert [(one["by"], one["position"], one["note"]) for one in newest["checks"]] == [
        ("sample", "binlog.000001:300", "4 rows compared")
    ]
    assert [(one["by"], one["position"]) for one in middle["checks"]] == [
        ("verify", "binlog.000001:200"),
        ("verify", "binlog.000001:240"),
    ]
    assert oldest["checks"] == []
    shown = cdc("explain", "shop", "shop.people", "de", 1).stdout
    assert "equal: the whole table was compared, at binlog.000001:200, 2026-01-31 12:00:00 UTC" in shown

    with Lake.open(lake.config, store=store) as opened:
        (of_first,), (of_second,) = (opened.at(one).verified["shop.people"] for one in people)
        assert (of_first.where, of_first.equal.position, of_first.changed_rows) == ("at", at(200), None)
        assert (of_second.where, of_second.equal.position) == ("before", at(240))
        assert of_second.changed_rows.compared == 4
        assert opened.cut("latest").cut == second
    with Lake.open(lake.config) as opened, pytest.raises(ConfigError, match="the lake was opened without it"):
        assert opened.at(first).verified
