"""Bounds leave out what cannot have a key, and nothing else."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from cdc_lib.read.bounds import Bound, Bounds, decode_bound, greatest_point, least_point, point_of
from cdc_lib.read.keys import order_value

VALUES = [
    (IntegerType(), pa.int32(), -5),
    (LongType(), pa.int64(), -(2**63)),
    (IntegerType(), pa.int64(), -5),  # written before the column was widened
    (FloatType(), pa.float64(), -1.5),
    (DoubleType(), pa.float64(), 1e300),
    (DecimalType(9, 2), pa.decimal128(9, 2), Decimal("-12.34")),
    (DecimalType(9, 2), pa.decimal128(12, 2), Decimal("12.34")),
    (DecimalType(20, 0), pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (DateType(), pa.date32(), date(1950, 1, 1)),
    (TimestampType(), pa.timestamp("us"), datetime(1950, 1, 1, 1, 1, 1, 5)),  # noqa: DTZ001
    (StringType(), pa.string(), "é"),
    (BinaryType(), pa.binary(), b"a\x00"),
    (BooleanType(), pa.bool_(), False),
]


@pytest.mark.parametrize(("written", "read", "value"), VALUES, ids=[str(one) for one in VALUES])
def test_bounds_of_manifests_become_the_order_values_of_keys(written, read, value):
    assert decode_bound(read, to_bytes(written, value)) == order_value(read, value)


def test_files_are_found_by_all_parts_of_a_key():
    """An unknown bound leaves nothing out; null is found where nulls may be."""
    files = [
        (Bound(1, 5, nulls=False), Bound(b"b", b"d", nulls=False)),
        (Bound(5, 9, nulls=False), Bound(b"", b"a\x00", nulls=False)),
        (Bound(), Bound(None, b"c", nulls=False)),
        (Bound(None, None, nulls=False), Bound(b"c", None)),
    ]
    bounds = Bounds(files, (pa.int64(), pa.string()))
    assert bounds.with_key((5, b"c")) == [0, 2, 3]
    assert bounds.with_key((5, b"a\x00")) == [1, 2]
    assert bounds.with_key((5, b"a\x00\x00")) == [2]
    assert bounds.with_key((2**63 - 1,)) == [2, 3]
    assert bounds.with_key((None,)) == [2]
    assert bounds.with_key((1, None)) == [3]
    assert Bounds([], (pa.int64(),)).with_key((1,)) == []


def test_points_enclose_the_keys_of_a_file():
    """Column by column; null is less than every value."""
    bounds = (Bound(1, 5, nulls=False), Bound(b"b", b"d", nulls=False))
    assert least_point(bounds) < point_of((1, b"b\x00")) < point_of((5, b"a")) < greatest_point(bounds)
    assert least_point((Bound(1, 5),)) == point_of((None,)) < point_of((-(2**63),))
    assert greatest_point((Bound(1, None, nulls=False),)) > point_of((2**63,))
