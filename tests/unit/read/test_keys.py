"""Keys that callers give: what is taken, and what the errors name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import KeyColumns, NoSuchKey

LINES = KeyColumns((ReadColumn("order", 1, pa.int64()), ReadColumn("line", 2, pa.int32())), "shop.lines")
NAIVE = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001

ORDER_VALUES = [
    (pa.int64(), -(2**63), -(2**63)),
    (pa.decimal128(20, 0), 2**64 - 1, 2**64 - 1),
    (pa.decimal128(9, 2), Decimal("-1.5"), -150),
    (pa.decimal128(9, 2), Decimal("1.500"), 150),
    (pa.string(), "é", b"\xc3\xa9"),
    (pa.binary(), bytearray(b"\x00\xff"), b"\x00\xff"),
    (pa.date32(), date(1969, 12, 31), -1),
    (pa.timestamp("us"), NAIVE, -1),
    (pa.timestamp("us", "UTC"), NAIVE.replace(tzinfo=UTC), -1),
    (pa.float64(), -0.0, 0.0),
    (pa.bool_(), True, 1),
    (pa.date32(), None, None),
]

WRONG_TYPES = [
    (pa.int64(), "42", "takes an int, and str is given"),
    (pa.int64(), True, "takes an int, and bool is given"),
    (pa.int64(), 1.0, "takes an int, and float is given"),
    (pa.string(), b"x", "takes a str, and bytes is given"),
    (pa.binary(), "x", "takes bytes, and str is given"),
    (pa.date32(), NAIVE, "takes a date, and datetime is given"),
    (pa.timestamp("us"), NAIVE.replace(tzinfo=UTC), "a datetime without a time zone"),
    (pa.timestamp("us", "UTC"), NAIVE, "a datetime with a time zone"),
    (pa.decimal128(9, 2), 1.5, "takes a Decimal or an int, and float is given"),
]

NOT_HELD = [
    (pa.int32(), 2**31),
    (pa.int32(), -(2**31) - 1),
    (pa.int64(), 2**63),
    (pa.decimal128(4, 2), Decimal("1.234")),
    (pa.decimal128(4, 2), Decimal(100)),
    (pa.decimal128(4, 2), Decimal("NaN")),
    (pa.float32(), 0.1),
    (pa.string(), "\ud800"),
]


def key_of(of):
    return KeyColumns((ReadColumn("id", 1, of),), "shop.orders")


@pytest.mark.parametrize(("of", "value", "expected"), ORDER_VALUES, ids=[str(one[:2]) for one in ORDER_VALUES])
def test_a_value_is_compared_as_a_number_or_as_bytes(of, value, expected):
    """The same order values come from Iceberg's bounds and from Parquet's statistics."""
    key = key_of(of).parse((value,))
    assert key.order == (expected,)
    assert key.values[0].type == of


@pytest.mark.parametrize(("of", "value", "message"), WRONG_TYPES, ids=[str(one[:2]) for one in WRONG_TYPES])
def test_a_wrong_type_names_the_key_column(of, value, message):
    with pytest.raises(ConfigError, match=f"key column id .*{message}|key column id {message}") as error:
        key_of(of).parse(value)
    assert f"The key is id ({of})." in str(error.value)


@pytest.mark.parametrize(("of", "value"), NOT_HELD, ids=map(str, NOT_HELD))
def test_a_value_that_the_column_cannot_hold_is_no_row_s_key(of, value):
    with pytest.raises(NoSuchKey):
        key_of(of).parse(value)


def test_a_composite_key_is_a_tuple_or_a_dict():
    assert LINES.parse((1, 2)) == LINES.parse({"line": 2, "order": 1}) == LINES.parse([1, 2])
    assert LINES.parse((1,), prefix=True).order == LINES.parse({"order": 1}, prefix=True).order == (1,)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((1,), "a key has 2 parts, not 1"),
        (1, "a key has 2 parts, not 1"),
        ((1, 2, 3), "a key has 2 parts, not 3"),
        ((), "a key has 2 parts, not 0"),
        ({"order": 1}, "a key has 2 parts, not 1"),
        ({"line": 1}, "the key's column order is missing"),
        ({"order": 1, "row": 2}, "row is not a column of the key"),
        ((1, "2"), "key column line takes an int"),
    ],
)
def test_what_is_wrong_with_a_composite_key_is_said(key, message):
    with pytest.raises(ConfigError, match=message):
        LINES.parse(key)
