"""Doctor names erasures that have not ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from cdc_lib.doctor.erasures_check import check_erasures
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.store.erasures import keep_erasure
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import IDENTITY

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ERASURE = Erasure(
    "0" * 16,
    "shop",
    TableName("shop", "customers"),
    "00",
    (),
    IDENTITY,
    1,
    Position("binlog.000001", 4),
    "",
    AT,
    AT,
    "ann",
)


def test_an_erasure_is_named_until_it_has_ended(tmp_path):
    """Also one that left something; those of other sources are not this one's."""
    store = LocalStore(tmp_path)
    keep_erasure(store, replace(ERASURE, id="1" * 16, ended_at=AT))
    keep_erasure(store, replace(ERASURE, source="other"))
    assert list(check_erasures("shop", store)) == []
    for one in (ERASURE, replace(ERASURE, tried_at=AT)):
        keep_erasure(store, one)
        (found,) = check_erasures("shop", store)
        assert (found.level, found.is_bad) == ("warning", False)
        assert found.what == "shop.customers: the erasure that ann asked for at 2026-03-01 12:30 UTC has not ended"
        assert found.hint.endswith("cdc lake erase shop shop.customers")
    keep_erasure(store, replace(ERASURE, ended_at=AT))
    assert list(check_erasures("shop", store)) == []
