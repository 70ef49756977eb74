"""Listings of servers that sort the slash before all other characters."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.ports import ObjectInfo
from cdc_lib.store.objects.key_order import in_order_of_keys

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = st.sets(st.text("ab-./0", min_size=1, max_size=8), max_size=30)
PREFIXES = st.sampled_from(["", "a", "a/", "a/b", "shop/"])


def slash_first(key):
    return key.replace("/", "\0")


@given(KEYS, PREFIXES, st.sampled_from([slash_first, str]))
def test_a_listing_is_in_the_order_of_keys_whatever_the_server_thinks_of_slashes(keys, prefix, order):
    """Every key once, and none is held longer than its neighbours need."""
    listed = [ObjectInfo(prefix + key, 0, NOW) for key in sorted(keys, key=order)]
    assert [info.key for info in in_order_of_keys(listed, prefix)] == sorted(prefix + key for key in keys)


def test_only_one_folder_is_held_at_a_time():
    """A listing of many batches comes as it is read."""
    read = []

    def listed():
        for batch in range(3):
            for name in ("x", "x-1"):
                read.append(batch)
                yield ObjectInfo(f"s/{batch:06}/{name}", 0, NOW)

    found = in_order_of_keys(listed(), "s/")
    assert next(found).key == "s/000000/x"
    assert max(read) == 1
