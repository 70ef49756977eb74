"""Stops of docs/operations.md for want of batches, and cursors and markers that were not written here: in turn on one shop."""

from __future__ import annotations

import json

import pytest

from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.store import layout
from cdc_lib.store.windows import stored_windows
from tests.harness.binlog import xa
from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Stop, follow_all, nothing

TWICE = ("cdc run shop", "cdc run shop")


def lose_batch(shop, window):
    shop.lose(*[info.key for info in shop.store.list(window.key.removesuffix(layout.MANIFEST))])


def batch_lost_and_binlog_purged(shop):
    for number in (2, 3):
        shop.change(number)
        shop.drain()
    lose_batch(shop, shop.waiting()[0])
    shop.execute("FLUSH BINARY LOGS")
    shop.change(4)
    shop.drain()
    shop.server.purge_binlogs()


def batch_of_a_prepared_transaction_lost(shop):
    xa.prepare(shop.server, shop.database, "'x'", "UPDATE `lines` SET n = 70 WHERE id = 5")
    shop.runs(1)
    prepared = stored_windows(shop.store, "shop")[-1]
    xa.commit(shop.server, "'x'")
    shop.runs(1)
    lose_batch(shop, prepared)


def marker_of_a_newer_release(shop):
    """A commit whose marker says so, without rows."""
    shop.change(6)
    (last,) = shop.sql("SELECT snapshot_id, summary FROM {t}.snapshots ORDER BY committed_at DESC LIMIT 1")
    shop.last = last[0]
    name = shop.lake.name(f"{shop.database}.orders")
    writer = shop.lake.spark.table(name).limit(0).writeTo(name)
    for key, text in dict(last[1]).items():
        if key.startswith(MARKER_PROPERTY):
            writer.option(f"snapshot-property.{key}", json.dumps({**json.loads(text), "format_version": 99}))
    writer.append()


def marker_of_this_release(shop):
    shop.call("rollback_to_snapshot", f"snapshot_id => {shop.last}")


def cursor_edited(shop):
    """Set the position by hand to the end of a later transaction, while a window is in flight."""
    (shop.folder / "shop-cursors.json").write_text(shop.cdc("cdc cursor export shop"))
    shop.change(7)
    shop.cdc("cdc step drain shop")
    shop.change(8)
    document = shop.cursor("drain")
    file, end = shop.execute("SHOW BINARY LOGS")[-1][:2]
    document["position"] = {"file": file, "offset": int(end)}
    (shop.folder / "store" / layout.cursor_key("shop", "drain")).write_text(json.dumps(document))


STOPS = {
    "nowhere": Stop(
        "…; raw events of the window are not stored", batch_lost_and_binlog_purged, "cdc batches refill shop", nothing,
        then=("cdc batches refill shop --over --why purged", *TWICE), hint="cdc batches refill shop --over",
    ),
    "prepared": Stop(
        "the XA transaction … is committed, and its rows are in no batch", batch_of_a_prepared_transaction_lost,
        "cdc tail shop --consumer audit --start earliest", nothing,
        then=("cdc consumers drop shop audit", "cdc tail shop --consumer audit --start latest"), hint="--start latest",
    ),
    "marker": Stop(
        "the marker … in the table's snapshot cannot be read: …", marker_of_a_newer_release, "cdc run shop",
        marker_of_this_release,
    ),
    "cursor": Stop(
        "window … does not start where the … cursor is", cursor_edited, "cdc step ack drain shop", nothing,
        then=("cdc cursor restore shop --file {folder}/shop-cursors.json", *TWICE),
    ),
}  # fmt: skip


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.runs(2)
    return shop


def test_what_the_page_says_ends_each_stop_for_want_of_a_batch_and_the_tables_are_equal_afterwards(shop, subtests):
    """Each prints its message; what its row says leads on."""
    follow_all(shop, STOPS, subtests, last_change=9)
