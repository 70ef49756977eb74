from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

from airflow.sdk import Asset, AssetAlias

from cdc_airflow.assets import announce, changed_tables, table_asset
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Position


class Events:
    """Takes what Airflow's ``outlet_events[alias]`` would."""

    def __init__(self) -> None:
        self.added: list[tuple[Asset, dict]] = []

    def add(self, asset: Asset, extra: dict) -> None:
        self.added.append((asset, extra))


def test_only_tables_that_changed_are_announced():
    """A DAG that is scheduled on a table does not run for nothing."""
    cut = Cut(
        source="shop",
        merge_id="m1",
        epoch=2,
        position=Position("binlog.000007", 400),
        event_time=None,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        tables=(
            TableCut("shop.orders", "lake.shop.orders", 7418529630741852963, 12),
            TableCut("shop.idle", "lake.shop.idle", 5, 0),
        ),
    )
    events: dict[AssetAlias, Events] = defaultdict(Events)
    assert announce(cut, events) == ["cdc://shop/shop/orders"]
    ((asset, extra),) = events[changed_tables("shop")].added
    assert asset == table_asset("shop", "shop.orders")
    assert extra == {
        "merge_id": "m1",
        "epoch": 2,
        "position": "binlog.000007:400",
        "lake_table": "lake.shop.orders",
        "lake_snapshot": "7418529630741852963",
        "changes": 12,
    }


def test_names_with_slashes_and_spaces_make_one_address_each():
    """Two tables never share an asset."""
    assert table_asset("s", "a.b/c").uri == "cdc://s/a/b%2Fc"
    assert table_asset("s", "a.b c").uri != table_asset("s", "a.b").uri
