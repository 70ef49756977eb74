"""A cut is found by what a person knows: a time, a GTID, a position, or its id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.read.cuts import cut_as_of, find_cut
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
UUID, OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429563"


def cut(epoch, file, offset, hour, gtid_set=""):
    place = Position(f"binlog.{file:06d}", offset)
    time = NOON + timedelta(hours=hour)
    return Cut("shop", f"{epoch:06d}-{place.sortable}-abc", epoch, place, time, time, (), gtid_set=gtid_set)


def stored(tmp_path, *cuts):
    store = LocalStore(tmp_path / "store")
    for one in cuts:
        publish(store, one)
    return store


MYSQL = [
    cut(1, 1, 400, 0, f"{UUID}:1-10"),
    cut(1, 2, 100, 1, f"{UUID}:1-20"),
    cut(2, 1, 300, 2, f"{OTHER}:1-5,{UUID}:1-20"),
    cut(2, 1, 900, 3, f"{OTHER}:1-9,{UUID}:1-20"),
]


@pytest.mark.parametrize(
    ("which", "number"),
    [
        ("latest", 3),
        (MYSQL[1].merge_id, 1),
        ("2026-01-31T13:59:59Z", 1),
        ("2026-01-31T14:00:00", 2),
        (f"{UUID}:10", 0),
        (f"{UUID}:11", 1),
        (f"{UUID}:5-20", 1),
        (f"{OTHER}:1", 2),
        (f"{UUID}:1,{OTHER}:6", 3),
        ("binlog.000001:300", 2),
        ("binlog.000001:899", 2),
        ("binlog.000007:4", 3),
    ],
)
def test_a_cut_is_found(tmp_path, which, number):
    """By a time and a position the last one before it, by a GTID the first one that has it; positions count in the last epoch."""
    assert find_cut(stored(tmp_path, *MYSQL), "shop", which) == MYSQL[number]


@pytest.mark.parametrize(
    ("which", "error"),
    [
        ("2026-01-31T11:59:59Z", "no cut is stored whose last transaction was committed by"),
        (f"{UUID}:21", "no stored cut is known to have"),
        ("2026-01-31", "no cut is stored whose last transaction was committed by 2026-01-31 00:00"),
        ("0-1-5", "no stored cut is known to have"),
        ("binlog.000001:299", "no cut of the current epoch is stored at"),
        ("noon", "shop has no cut 'noon'"),
        (f"{UUID}:0", "is not a set of GTIDs"),
        ("../../lake", "shop has no cut"),
        ("", "shop has no cut"),
    ],
)
def test_what_is_no_cut_is_refused_with_what_to_write(tmp_path, which, error):
    with pytest.raises(ConfigError, match=error):
        find_cut(stored(tmp_path, *MYSQL), "shop", which)


def test_a_cut_without_known_gtids_is_passed_over(tmp_path):
    """On MariaDB, where a later GTID of a domain has all earlier ones."""
    cuts = [cut(1, 1, 100, 0, "0-1-7"), cut(1, 1, 200, 1), cut(1, 1, 300, 2, "0-1-9,0-2-12")]
    store = stored(tmp_path, *cuts)
    assert find_cut(store, "shop", "0-1-7") == cuts[0]
    assert find_cut(store, "shop", "0-1-8") == cuts[2]
    assert find_cut(store, "shop", "0-2-11") == cuts[2]


def test_a_source_without_cuts_says_so(tmp_path):
    with pytest.raises(ConfigError, match="shop has no cut yet"):
        find_cut(stored(tmp_path), "shop", "latest")
    with pytest.raises(ConfigError, match="needs a time zone"):
        cut_as_of(stored(tmp_path), "shop", NOON.replace(tzinfo=None))
