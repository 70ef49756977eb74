"""Keys as they are typed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.read.key_text import parse_key, parse_parts

NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001
TEXTS = [
    (pa.int64(), "-42", -42),
    (pa.decimal128(20, 0), "18446744073709551615", Decimal(2**64 - 1)),
    (pa.float64(), "1.5", 1.5),
    (pa.bool_(), "true", True),
    (pa.date32(), "2026-01-31", date(2026, 1, 31)),
    (pa.timestamp("us"), "2026-01-31T12:00:00", NOON),
    (pa.timestamp("us", "UTC"), "2026-01-31 12:00:00", NOON.replace(tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), "2026-01-31T14:00:00+02:00", NOON.replace(tzinfo=UTC)),
    (pa.string(), "[a", "[a"),
    (pa.binary(), "00ff", b"\x00\xff"),
]
WRONG = [
    (pa.int64(), "4.2", "a whole number"),
    (pa.decimal128(9, 2), "x", "a number"),
    (pa.bool_(), "yes", "true or false"),
    (pa.date32(), "31.1.2026", "a date such as"),
    (pa.timestamp("us"), "2026-01-31T12:00:00Z", "a time without zone"),
    (pa.binary(), "0x00", "hex digits"),
]
LINES = pa.schema([("amount", pa.int32()), ("order", pa.int64()), ("line", pa.string())])


@pytest.mark.parametrize(("of", "text", "value"), TEXTS, ids=[one[1] for one in TEXTS])
def test_a_text_is_a_value_of_its_column(of, text, value):
    assert parse_parts(pa.schema([("id", of)]), ("id",), [text]) == (value,)
    assert parse_key(pa.schema([("id", of)]), ("id",), text) == (value,)


@pytest.mark.parametrize(("of", "text", "expected"), WRONG, ids=[one[1] for one in WRONG])
def test_a_text_that_is_no_value_names_the_column(of, text, expected):
    with pytest.raises(ConfigError, match=f"key column id takes {expected}.*, not '{text}'"):
        parse_parts(pa.schema([("id", of)]), ("id",), [text])


def test_a_key_of_several_columns_is_a_json_list_or_its_first_part():
    key = ("order", "line")
    assert parse_key(LINES, key, '[42, "7"]') == parse_key(LINES, key, '["42", 7]') == (42, "7")
    assert parse_key(LINES, key, "42") == parse_key(LINES, key, "[42]") == (42,)
    with pytest.raises(ConfigError, match="is not a JSON list"):
        parse_key(LINES, key, "[42")
    with pytest.raises(ConfigError, match="the key has 2 parts, not 3"):
        parse_parts(LINES, key, ["1", "2", "3"])
