"""``cdc batches list``: the windows of a source by their manifests; no server is needed."""

from __future__ import annotations

import json

import pytest

from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.window import Window
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})


@pytest.fixture
def store(tmp_path):
    """Three batches: two acknowledged, one in flight; and one of a part that a rewind left out."""
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    for start, stop in ((4, 100), (100, 200), (200, 300), (900, 950)):
        writer.window(
            start, stop, {ORDERS: [Row("c", start + 1, {"id": start}), Row("c", start + 1, {"id": 1}, row=1)]}
        )
    drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, at(200)).with_windows((Window("shop", 1, at(200), at(300)),))
    ObjectCursorStore(store).swap(None, drain)
    return store


def test_batches_are_listed_with_their_bounds_rows_and_state(cdc, store):
    """In the order of the binlog."""
    found = json.loads(cdc("batches", "list", "shop", "--json").stdout)
    assert [(one["from"], one["to"], one["status"]) for one in found] == [
        ("binlog.000001:4", "binlog.000001:100", "acked"),
        ("binlog.000001:100", "binlog.000001:200", "acked"),
        ("binlog.000001:200", "binlog.000001:300", "in flight"),
        ("binlog.000001:900", "binlog.000001:950", "unused"),
    ]
    assert {(one["epoch"], one["rows"]) for one in found} == {(1, 2)}
    assert all(one["bytes"] > 0 for one in found)
    shown = cdc("batches", "list", "shop").stdout
    for part in ("binlog.000001:300", "in flight", "acked", "unused"):
        assert part in shown


def test_only_the_manifests_that_are_shown_are_read(cdc, store):
    """A source may have ten thousand of them: a broken one that is not shown is no error."""
    broken = next(
        info.key for info in store.list("shop/batches") if info.key.endswith("-000001.000000000100/manifest.json")
    )
    (store.root / broken).write_bytes(b"{")
    shown = cdc("batches", "list", "shop", "--limit", 2)
    assert shown.exit_code == 0
    assert "binlog.000001:950" in shown.stdout
    assert "binlog.000001:100 " not in shown.stdout
    assert "2 earlier batches; --limit shows more" in shown.stdout
    assert cdc("batches", "list", "shop").exit_code == 1


def test_a_source_without_batches_is_no_error(cdc):
    """An empty list for programs."""
    assert "shop has no batches in the store" in cdc("batches", "list", "shop").stdout
    assert json.loads(cdc("batches", "list", "shop", "--json").stdout) == []
