from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cdc_lib.model.position import Position
from cdc_lib.model.verify import Report, TableReport
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.verified import keep, last_verified

AT = datetime(2026, 1, 1, tzinfo=UTC)


def report(day, offset, **found):
    at, position = AT + timedelta(days=day), Position("binlog.000001", offset)
    table = TableReport("shop.orders", "lake.shop.orders", source_rows=3, position=position, **found)
    skipped = TableReport("shop.views", "lake.shop.views", skipped="it is quarantined")
    return Report("shop", 1, position, "a:1-5", at, at, (table, skipped))


def test_the_last_comparison_and_the_last_one_without_drift_are_kept(tmp_path):
    """Nothing is written for a skipped table."""
    store = LocalStore(tmp_path)
    keep(store, report(0, 100, missing=1))
    (first,) = last_verified(store, "shop")
    assert (first.clean, first.clean_at, first.missing, first.gtid_set) == (False, None, 1, "a:1-5")
    keep(store, report(1, 200, in_flight=2))
    keep(store, report(2, 300, unexamined=5))
    (found,) = last_verified(store, "shop")
    assert (found.clean, found.position.offset, found.at) == (False, 300, AT + timedelta(days=2))
    assert (found.clean_position, found.clean_at) == (Position("binlog.000001", 200), AT + timedelta(days=1))


def test_comparisons_without_drift_stay_known(tmp_path, monkeypatch):
    """So that an older cut knows its own; the oldest ones go."""
    monkeypatch.setattr("cdc_lib.store.verified.KEPT_CHECKS", 3)
    store = LocalStore(tmp_path)
    for day in range(6):
        keep(store, report(day, 100 + day, **({"missing": 1} if day in (2, 5) else {"in_flight": day})))
    (found,) = last_verified(store, "shop")
    assert [(one.position.offset, one.in_flight, one.gtid_set) for one in found.known_clean] == [
        (101, 1, "a:1-5"),
        (103, 3, "a:1-5"),
        (104, 4, "a:1-5"),
    ]
    assert found.clean_position == found.known_clean[-1].position
