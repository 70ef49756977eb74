"""Rows of batches get the types of the lake's columns, as far as these have their values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.apply.key_rows import AskedKeys, KeyRows
from cdc_lib.apply.rows import LakeShape, numbers_of
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.table_mode import TO_ORDER

CHANGE = {"_op": "c", "_epoch": 1, "_binlog": 1, "_offset": 10, "_row": 0, "_ts": None, "_gtid": None}
WIDER = [
    (pa.uint64(), pa.decimal128(20, 0), 2**64 - 1, Decimal(2**64 - 1)),  # BIGINT UNSIGNED
    (pa.int32(), pa.int64(), -(2**31), -(2**31)),
    (pa.int32(), pa.float64(), 2**31 - 1, float(2**31 - 1)),
    (pa.float32(), pa.float64(), 0.5, 0.5),
    (pa.int32(), pa.decimal128(12, 2), -7, Decimal("-7.00")),
    (pa.int64(), pa.decimal128(38, 6), 2**63 - 1, Decimal(2**63 - 1)),
    (pa.uint64(), pa.decimal128(30, 4), 2**64 - 1, Decimal(2**64 - 1)),
    (pa.decimal128(5, 1), pa.decimal128(12, 2), Decimal("1234.5"), Decimal("1234.50")),
    (pa.null(), pa.binary(), None, None),
]
OTHER = [
    (pa.string(), pa.int32(), "1"),
    (pa.int32(), pa.string(), 1),
    (pa.bool_(), pa.int32(), True),
    (pa.int32(), pa.bool_(), 1),
    (pa.float64(), pa.int64(), 1.0),
    (pa.float64(), pa.decimal128(12, 2), 1.5),
    (pa.int64(), pa.int32(), 2**31),
    (pa.int64(), pa.float64(), 2**53 + 1),
    (pa.decimal128(12, 2), pa.decimal128(12, 1), Decimal("0.01")),
    (pa.decimal128(12, 2), pa.int64(), Decimal("0.01")),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), 0),
    (pa.timestamp("us"), pa.date32(), 0),
    (pa.binary(), pa.string(), b"a"),
]


def shaped(given, wanted, value):
    fields = (pa.field("v", wanted), pa.field("_offset", pa.int64()))
    rows = pa.table({**{name: [cell] for name, cell in CHANGE.items()}, "v": pa.array([value], given)})
    return LakeShape("shop.orders", fields, {}, lambda _: True).of(rows, {"v": "v"})


@pytest.mark.parametrize(("given", "wanted", "value", "expected"), WIDER)
def test_a_lake_column_that_became_wider_gets_older_rows_exactly(given, wanted, value, expected):
    rows = shaped(given, wanted, value)
    assert rows.column("v").type == wanted
    assert rows.column("v").to_pylist() == [expected]


@pytest.mark.parametrize(("given", "wanted", "value"), OTHER)
def test_a_value_that_the_lakes_column_does_not_have_is_refused(given, wanted, value):
    """Also where it could be written in another form."""
    with pytest.raises(IncompatibleSchema, match=r"column v is .* in a batch and .* in the lake table"):
        shaped(given, wanted, value)


@pytest.mark.parametrize("kind", [pa.string(), pa.timestamp("us", "UTC")])
def test_a_column_of_the_source_that_scd2_reserves_is_null_in_rows_that_lack_it(kind):
    """Which the source dropped, and the lake keeps; only the versions of scd2 begin at their commit."""
    fields = (pa.field("v", pa.int32()), pa.field("_valid_from", kind), pa.field("_offset", pa.int64()))
    at = pa.array([datetime(2024, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({**{name: [cell] for name, cell in CHANGE.items()}, "_ts": at, "v": pa.array([1], pa.int32())})
    shape = LakeShape("shop.orders", fields, {}, lambda _: True)
    assert shape.of(rows, {"v": "v"}).column("_valid_from").to_pylist() == [None]
    versions = replace(
        shape,
        fields=(
            *fields[:1],
            pa.field("_valid_from", pa.timestamp("us", "UTC")),
            *(pa.field(name, pa.int64()) for name in TO_ORDER),
        ),
    )
    assert versions.of(rows, {"v": "v"}).column("_valid_from").to_pylist() == rows.column("_ts").to_pylist()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_keys_of_inexact_numbers_are_found(kind):
    """Minus zero is zero; NaN, which another writer may have written, is itself."""
    nan = float("nan")
    asked = AskedKeys([pa.array([0.0, 1.5, nan], kind)])
    rows, numbers = asked.find(KeyRows.of([pa.chunked_array([pa.array([1.5, -0.0, 2.0, nan, 0.0], kind)])], None))
    assert sorted(zip(rows.tolist(), numbers.tolist(), strict=True)) == [(0, 1), (1, 0), (3, 2), (4, 0)]
    same = numbers_of(pa.table({"k": pa.array([0.0, -0.0, nan, nan, 1.5], kind)}), ["k"])
    assert (same[0], same[2], len(set(same.tolist()))) == (same[1], same[3], 3)
