from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

import pytest
from airflow.sdk import Asset, AssetAlias

from cdc_airflow.assets import CutContext, announce, changed_tables, table_asset
from cdc_lib.model.changed_rows import ChangedRows
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.status.coverage import CoveredRows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Events:
    """Takes what Airflow's ``outlet_events[alias]`` would."""

    def __init__(self) -> None:
        self.added: list[tuple[Asset, dict]] = []

    def add(self, asset: Asset, extra: dict) -> None:
        self.added.append((asset, extra))


class OutletEvents:
    """Takes what Airflow's ``outlet_events`` would: by the alias's name."""

    def __init__(self) -> None:
        self.of: dict[str, Events] = defaultdict(Events)

    def __getitem__(self, alias: AssetAlias) -> Events:
        return self.of[alias.name]


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
    events = OutletEvents()
    assert announce(cut, events) == ["cdc://shop/shop/orders"]
    ((asset, extra),) = events[changed_tables("shop")].added
    assert asset == table_asset("shop", "shop.orders")
    assert asset.extra == {"source": "shop", "database": "shop", "table": "orders"}
    assert extra == {
        "merge_id": "m1",
        "cut_at": "2026-01-01T00:00:00+00:00",
        "epoch": 2,
        "position": "binlog.000007:400",
        "lake_table": "lake.shop.orders",
        "lake_snapshot": "7418529630741852963",
        "changes": 12,
    }


def test_an_asset_event_has_what_is_known_of_its_table():
    """Rows by kind, GTIDs, lag, the last comparison without drift, and as of where a quarantined table is."""
    table, at = TableName("shop", "orders"), Position("binlog.000007", 400)
    rows = RowCounts(inserts=2, updates=1, deletes=0, reads=9)
    one = TableCut(table, "lake.shop.orders", 7, 12, as_of=Position("binlog.000006", 4), rows=rows)
    verified = Verified(
        "shop", table, "lake.shop.orders", 2, at, "", NOON, 5, 1, 0, 0, 0, 0,
        clean_position=Position("binlog.000005", 9), clean_epoch=1, clean_at=NOON,
    )  # fmt: skip
    covered = CoveredRows(0.98765, NOON, at, 2, overdue=False, wrong=0, skipped="")
    key = (table, "lake.shop.orders")
    known = CutContext("uuid:1-9", 4.56789, {key: verified}, covered={key: covered})
    events = OutletEvents()
    announce(Cut("shop", "m1", 2, at, NOON, NOON, (one,)), events, known)
    ((_, extra),) = events[changed_tables("shop")].added
    assert extra == {
        "merge_id": "m1",
        "cut_at": "2026-01-01T12:00:00+00:00",
        "epoch": 2,
        "position": "binlog.000007:400",
        "lake_table": "lake.shop.orders",
        "lake_snapshot": "7",
        "changes": 12,
        "event_time": "2026-01-01T12:00:00+00:00",
        "gtid_set": "uuid:1-9",
        "rows": {"c": 2, "u": 1, "d": 0, "r": 9},
        "lag_seconds": 4.568,
        "verified_to": {"epoch": 1, "position": "binlog.000005:9", "at": "2026-01-01T12:00:00+00:00"},
        "covered": {
            "ratio": 0.9877,
            "oldest_at": "2026-01-01T12:00:00+00:00",
            "epoch": 2,
            "position": "binlog.000007:400",
        },
        "as_of": "binlog.000006:4",
    }


@pytest.mark.parametrize(("merge_id", "expected"), [("m1", True), ("m0", False)])
def test_an_asset_event_has_the_rows_of_its_merge_that_were_compared(merge_id, expected):
    """Those of an earlier merge say nothing about this one."""
    table, at = TableName("shop", "orders"), Position("binlog.000007", 400)
    one = TableCut(table, "lake.shop.orders", 7, 12)
    rows = ChangedRows(
        table, "lake.shop.orders", merge_id, 2, at, "", NOON, compared=9, in_flight=2, sampled=True, equal_at=NOON
    )
    events = OutletEvents()
    known = CutContext(changed={(table, "lake.shop.orders"): rows})
    announce(Cut("shop", "m1", 2, at, NOON, NOON, (one,)), events, known)
    ((_, extra),) = events[changed_tables("shop")].added
    compared = {"compared": 9, "equal": 7, "in_flight": 2, "sampled": True, "at": "2026-01-01T12:00:00+00:00"}
    assert extra.get("changed_rows_verified") == (compared if expected else None)


def test_names_with_slashes_and_spaces_make_one_address_each():
    """Two tables never share an asset."""
    assert table_asset("s", "a.b/c").uri == "cdc://s/a/b%2Fc"
    assert table_asset("s", "a.b c").uri != table_asset("s", "a.b").uri
