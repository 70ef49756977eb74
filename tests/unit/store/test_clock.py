from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.errors import WrongClock
from cdc_lib.retention.garbage_collector import carry_out
from cdc_lib.retention.removal import Collection, Removal
from cdc_lib.store.clock import refuse_later_commit, refuse_other_clock
from cdc_lib.store.objects.local import LocalStore

NOW = datetime(2026, 11, 28, 6, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


@pytest.mark.parametrize("ahead", [timedelta(minutes=5), timedelta(minutes=-5)])
def test_a_clock_that_differs_from_the_stores_is_refused_and_both_are_named(store, ahead):
    said = []

    def wrong():
        said.append(datetime.now(UTC) + ahead)
        return said[-1]

    with pytest.raises(WrongClock, match=r"this machine's clock is at .*, and that of the store at ") as raised:
        refuse_other_clock(store, "shop", wrong)
    assert f"{said[-1]:%Y-%m-%d %H:%M:%S} UTC" in raised.value.message
    assert raised.value.retryable


def test_the_clock_of_the_store_is_taken(store):
    """Again too: the object stays."""
    for _ in range(2):
        refuse_other_clock(store, "shop", lambda: datetime.now(UTC))


def test_a_commit_after_this_machines_clock_is_refused_and_both_are_named():
    refuse_later_commit(None, NOW, "lake.shop.orders")
    refuse_later_commit(NOW + timedelta(seconds=20), NOW, "lake.shop.orders")
    words = r"clock is at 2026-11-28 06:00:00 UTC, and the last commit of the lake table lake.shop.orders is of 2026-11-28 06:05:00 UTC"
    with pytest.raises(WrongClock, match=words):
        refuse_later_commit(NOW + timedelta(minutes=5), NOW, "lake.shop.orders")


def test_a_collection_removes_nothing_if_the_clocks_differ(store, monkeypatch):
    """What a clock that is ahead takes for old may be of today."""
    store.put("shop/old", b"batch")
    real = LocalStore.put

    def put(self, key, data):
        etag = real(self, key, data)
        os.utime(self.root / key, (0, 0))
        return etag

    monkeypatch.setattr(LocalStore, "put", put)  # a store whose clock is decades slow
    planned = Collection("shop", (Removal("shop", "file", ("shop/old",), 5),), (), {}, {})
    with pytest.raises(WrongClock):
        carry_out(store, planned)
    assert store.get("shop/old") is not None
