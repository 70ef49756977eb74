"""Kernels on bytes made by hand."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.decimal import packed_size
from cdc_lib.binlog.types.jsonb import print_double
from cdc_lib.binlog.types.temporal import days
from cdc_lib.model.schema import SourceType
from tests.harness.binlog.cells import decode


def test_packed_decimals_are_unpacked():
    """The manual's own example, its negative, zero and NULL."""
    kind = SourceType("decimal", precision=14, scale=4)
    plus = bytes.fromhex("810dfb38d204d2")
    minus = bytes(255 - byte for byte in plus)
    zero = bytes.fromhex("80000000000000")
    assert packed_size(14, 4) == len(plus)
    wanted = [Decimal("1234567890.1234"), Decimal("-1234567890.1234"), Decimal("0.0000"), None]
    assert decode(kind, plus, minus, zero, None) == wanted


def test_texts_of_decimals_are_read_exactly():
    """To 38 digits; what is no number is a fault."""
    kind = SourceType("decimal", precision=38, scale=10)
    text = "-1234567890123456789012345678.0123456789"
    assert decode(kind, text.encode(), None, from_text=True) == [Decimal(text), None]
    with pytest.raises(ValueFault):
        decode(kind, b"1e5", from_text=True)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@example([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -0.0, 9007199254740993.0])
def test_texts_of_doubles_are_read_to_the_last_bit(values):
    """As the server prints them, ``1e308`` for Python's ``1e+308``, with and without ZEROFILL; NULL stays NULL."""
    cells = [None if value is None else repr(value).replace("e+", "e").encode() for value in values]
    filled = [cell if cell is None or cell.startswith(b"-") else cell.rjust(30, b"0") for cell in cells]
    for texts in (cells, filled):
        found = decode(SourceType("double"), *texts, from_text=True)
        assert [_bits(value) for value in found] == [_bits(value) for value in values]


def test_texts_of_floats_are_those_of_doubles():
    """Rounding a text to 32 bits directly could give another neighbour than rounding the double; what is no number is a fault."""
    text = b"1.00000017881393432617187499"  # rounds to a double that lies half way between two floats
    [found] = decode(SourceType("float"), text, from_text=True)
    assert found == float(np.float32(float(text)))
    with pytest.raises(ValueError, match="1_0"):
        decode(SourceType("float"), b"1_0", from_text=True)


def _bits(value):
    return None if value is None else struct.pack("<d", value)


@pytest.mark.parametrize("day", ["0001-01-01", "1600-02-29", "1900-03-01", "1970-01-01", "2000-02-29", "9999-12-31"])
def test_days_are_those_of_the_calendar(day):
    """Over leap years and centuries."""
    date = dt.date.fromisoformat(day)
    assert days(date.year, date.month, date.day) == (date - dt.date(1970, 1, 1)).days


def test_dates_with_impossible_parts_are_null_or_a_fault():
    """As configured."""
    packed = [
        (2023 << 9 | 2 << 5 | 29).to_bytes(3, "little"),
        bytes(3),
        (2024 << 9 | 2 << 5 | 29).to_bytes(3, "little"),
    ]
    assert decode(SourceType("date"), *packed) == [None, None, dt.date(2024, 2, 29)]
    with pytest.raises(ValueFault) as caught:
        decode(SourceType("date"), packed[2], packed[0], zero_dates="error")
    assert caught.value.row == 1


def test_times_below_zero_carry_their_fraction():
    """Whole and fraction are one two's complement number."""
    assert decode(SourceType("time", scale=2), bytes.fromhex("7fffffff"), bytes.fromhex("80000001")) == [
        "-00:00:00.01",
        "00:00:00.01",
    ]
    assert decode(SourceType("time"), bytes.fromhex("800000"), None) == ["00:00:00", None]


def test_datetimes_keep_their_microseconds():
    """Five bytes and three of fraction."""
    value = (2024 * 13 + 2) << 22 | 29 << 17 | 12 << 12 | 34 << 6 | 56
    cell = (value + 0x8000000000).to_bytes(5, "big") + (123456).to_bytes(3, "big")
    wanted = dt.datetime(2024, 2, 29, 12, 34, 56, 123456)  # noqa: DTZ001 - DATETIME has no zone
    assert decode(SourceType("datetime", scale=6), cell) == [wanted]


JSON = SourceType("json")


def string(text):
    return bytes([len(text)]) + text


def test_json_scalars_and_containers_are_printed():
    """As the server prints them."""
    small = b"\x02" + struct.pack("<HH", 2, 13) + b"\x05\x01\x00" + b"\x0c\x0a\x00" + string(b'a"')
    assert decode(JSON, small, b"\x04\x00", b"\x07" + struct.pack("<i", -5), b"", None) == [
        '[1, "a\\""]', "null", "-5", "null", None,
    ]  # fmt: skip
    entry = b"\x00" + struct.pack("<HH", 1, 12) + struct.pack("<HH", 11, 1) + b"\x04\x01\x00" + b"k"
    assert decode(JSON, entry) == ['{"k": true}']


@pytest.mark.parametrize("value", [0.1, 1.0, -0.0, 1e20, 1e-7, 1.7976931348623157e308, 123456789.123456789, 5e-324])
def test_json_doubles_read_back_as_the_same_number(value):
    """In the shortest text."""
    (text,) = decode(JSON, b"\x0b" + struct.pack("<d", value))
    assert struct.pack("<d", json.loads(text)) == struct.pack("<d", value)
    assert struct.pack("<d", float(print_double(value))) == struct.pack("<d", value)


@pytest.mark.parametrize(
    "cell",
    [
        b"\x02\x01\x00",
        b"\x02\xff\xff\xff\xff",
        b"\x0c\xff\xff\xff\xff\xff",
        b"\x0c\x05ab",
        b"\x0f\xf6\x02\x01\x05",
        b"\x63",
        b"\x0b\x00",
        b"\x0c\x02a\xff",
        b"\x02" + struct.pack("<HH", 1, 7) + b"\x02\x00\x00",
        b"\x00" + struct.pack("<HH", 1, 11) + struct.pack("<HH", 11, 900) + b"\x04\x01\x00",
    ],
)
def test_json_with_lying_lengths_is_a_fault(cell):
    """No byte after the value is read."""
    with pytest.raises(ValueFault):
        decode(JSON, cell)


def packed(year, month, day, hour, minute, second):
    return ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second


@pytest.mark.parametrize(
    ("part", "most", "beyond"), [(0, 9999, 10000), (3, 23, 24), (4, 59, 60), (5, 59, 63), (6, 999_999, 1_000_000)]
)
def test_parts_of_a_moment_that_no_clock_has_are_a_fault(part, most, beyond):
    """Of DATE, DATETIME and TIMESTAMP, in rows and in JSON documents: none is taken for another moment."""
    for value, fits in ((most, True), (beyond, False)):
        parts = [2024, 2, 29, 12, 34, 56, 789_000]
        parts[part] = value
        if value == most and part == 0:
            parts[1:3] = 12, 31
        number, micros = packed(*parts[:6]), parts[6]
        cells = [(SourceType("datetime", scale=6), (number + (1 << 39)).to_bytes(5, "big") + micros.to_bytes(3, "big"))]
        cells.append((JSON, b"\x0f\x0c\x08" + (number << 24 | micros).to_bytes(8, "little")))
        if part == 0:
            cells.append((SourceType("date"), (value << 9 | parts[1] << 5 | parts[2]).to_bytes(3, "little")))
        if part == 6:
            cells.append((SourceType("timestamp", scale=6), (10**9).to_bytes(4, "big") + micros.to_bytes(3, "big")))
        for kind, cell in cells:
            if fits:
                assert decode(kind, cell) != [None]
            else:
                with pytest.raises(ValueFault):
                    decode(kind, cell)
    with pytest.raises(ValueFault):
        decode(SourceType("date"), (2024 << 9 | 13 << 5 | 1).to_bytes(3, "little"))


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 4, 5, 6])
def test_a_time_beyond_its_limits_is_a_fault(scale):
    """838:59:59 is the last one, of either sign; fractions have no more digits than they have room for."""
    size = (scale + 1) // 2
    kind = SourceType("time", scale=scale)

    def cell(whole, fraction=0, sign=1):
        return ((1 << (23 + 8 * size)) + sign * (whole << (8 * size) | fraction)).to_bytes(3 + size, "big")

    last = 838 << 12 | 59 << 6 | 59
    zeros = "." + "0" * scale if scale else ""
    assert decode(kind, cell(last), cell(last, sign=-1)) == [f"838:59:59{zeros}", f"-838:59:59{zeros}"]
    wrong = [cell(839 << 12), cell(839 << 12, sign=-1), cell(1 << 12 | 60 << 6), cell(1 << 12 | 60)]
    if size:
        assert decode(kind, cell(1, 100**size - 1, -1)) == [f"-00:00:01.{'9' * scale}"]
        wrong.append(cell(1, 100**size))
    for one in wrong:
        with pytest.raises(ValueFault):
            decode(kind, one)


def test_bits_years_and_wide_numbers_are_exact():
    """Numbers beyond 63 bits go into decimals."""
    assert decode(SourceType("bit", width=64), b"\xff" * 8) == [Decimal(2**64 - 1)]
    assert decode(SourceType("bit", width=10), b"\x02\x01") == [513]
    assert decode(SourceType("int", width=8, unsigned=True), b"\xff" * 8, None) == [Decimal(2**64 - 1), None]
    assert decode(SourceType("int", width=3), b"\x00\x00\x80", b"\xff\xff\x7f") == [-8388608, 8388607]
    assert decode(SourceType("year"), b"\x00", b"\x7c") == [0, 2024]
    short = SourceType("year", text="year(2)")
    assert decode(short, b"1999", b"2155", b"0", None, from_text=True) == [1999, 2155, 0, None]
    assert decode(short, b"\x63", b"\x64") == [1999, 2000]


def test_members_without_a_label_are_a_fault():
    """An ENUM's 0 is the empty text of an invalid value."""
    kind = SourceType("enum", members=("x", "yé"))
    assert decode(kind, b"\x02", b"\x00", None) == ["yé", "", None]
    with pytest.raises(ValueFault):
        decode(kind, b"\x03")
    with pytest.raises(ValueFault):
        decode(SourceType("set", members=("a", "b")), b"\x04")
