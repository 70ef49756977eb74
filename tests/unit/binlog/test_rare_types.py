"""Codecs of seldom types on bytes made by hand, lying ones among them."""

from __future__ import annotations

import datetime as dt
import zlib
from decimal import Context, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.compressed import unpacked
from cdc_lib.binlog.types.decimal import groups
from cdc_lib.model.schema import SourceType
from tests.harness.binlog.cells import decode

UNTIMED = settings(deadline=None, max_examples=80)
"""The first call compiles."""
EXACT = Context(prec=70)


@st.composite
def long_decimals(draw):
    """A type of 39 to 65 digits and a value of it as digits and sign."""
    precision = draw(st.integers(39, 65))
    scale = draw(st.integers(0, 38))
    digits = draw(st.text("0123456789", min_size=precision, max_size=precision) | st.just("0" * precision))
    return precision, scale, draw(st.booleans()), digits


def packed(precision, scale, negative, digits):
    """The packed form, straight from its description."""
    whole, left = divmod(precision - scale, 9)
    sizes = ([left] if left else []) + [9] * (whole + scale // 9) + ([scale % 9] if scale % 9 else [])
    widths, _ = groups(precision, scale)
    found, at = b"", 0
    for size, width in zip(sizes, widths, strict=True):
        found += int(digits[at : at + size]).to_bytes(int(width), "big")
        at += size
    found = bytes((found[0] | 0x80, *found[1:])) if found[0] < 0x80 else found
    return bytes(byte ^ 0xFF for byte in found) if negative else found


@pytest.mark.parametrize("precision", [2, 9, 12, 38, 39, 65])
@pytest.mark.parametrize("negative", [False, True])
def test_digits_beyond_their_group_are_refused(precision, negative):
    """Nine digits in four bytes leave room for numbers that no server writes: they would run into the digits in front."""
    kind = SourceType("decimal", precision=precision, scale=0)
    digits = ("-" if negative else "") + "9" * precision
    most = packed(precision, 0, negative, "9" * precision)
    assert decode(kind, most) == [digits if precision > 38 else Decimal(digits)]
    one_more = int.from_bytes(most) + (-1 if negative else 1)
    with pytest.raises(ValueFault, match="beyond"):
        decode(kind, one_more.to_bytes(len(most)))


@pytest.mark.parametrize(("precision", "scale"), [(2, 0), (12, 0), (18, 9), (13, 2), (38, 30), (39, 1), (65, 30)])
def test_no_group_of_digits_may_be_larger_than_its_digits_say(precision, scale):
    """Each group of a DECIMAL in turn, in rows and inside JSON documents: whole ones and partial ones on either side."""
    kind = SourceType("decimal", precision=precision, scale=scale)
    widths, powers = groups(precision, scale)
    zero = packed(precision, scale, False, "0" * precision)
    at = 0
    for width, power in zip(widths.tolist(), powers.tolist(), strict=True):
        for number, fits in ((power - 1, True), (power, False)):
            cell = bytearray(zero)
            cell[at : at + width] = number.to_bytes(width, "big")
            cell[0] |= 0x80
            inside = b"\x0f\xf6" + bytes([len(cell) + 2, precision, scale]) + cell
            if fits:
                (row,), (document,) = decode(kind, bytes(cell)), decode(SourceType("json"), inside)
                assert Decimal(row) == Decimal(document) > 0
                continue
            for one, data in ((kind, bytes(cell)), (SourceType("json"), inside)):
                with pytest.raises(ValueFault):
                    decode(one, data)
        at += width


@UNTIMED
@given(long_decimals())
def test_long_decimals_are_their_digits(case):
    """Packed and as text of a result, with zeros in front as ZEROFILL puts them."""
    precision, scale, negative, digits = case
    kind = SourceType("decimal", precision=precision, scale=scale)
    value = Decimal((0, tuple(map(int, digits)), -scale))
    wanted = f"{EXACT.minus(value) if negative and value else value:f}"
    assert decode(kind, packed(*case), None) == [wanted, None]
    padded = (
        ("-" if negative and value else "")
        + digits[: precision - scale]
        + ("." + digits[precision - scale :] if scale else "")
    )
    assert decode(kind, padded.encode(), wanted.encode(), None, from_text=True) == [wanted, wanted, None]


@pytest.mark.parametrize("text", [b"", b"-", b"1e5", b"1.5", b"1.234", b"9" * 39 + b".00", b"1..0", b".00"])
def test_texts_that_are_no_such_decimal_are_a_fault(text):
    """Neither is one of another scale."""
    if text == b".00":
        assert decode(SourceType("decimal", precision=40, scale=2), text, from_text=True) == ["0.00"]
        return
    with pytest.raises(ValueFault):
        decode(SourceType("decimal", precision=40, scale=2), text, from_text=True)


def test_compressed_values_are_unpacked():
    """Kept as they are, with the zlib header and without."""
    text = "Привет ".encode() * 50
    raw = zlib.compressobj(wbits=-15)
    stream = raw.compress(text) + raw.flush()
    size = len(text).to_bytes(2, "big")
    kind = SourceType("string", charset="utf8mb4", form="compressed")
    cells = (b"", b"\0short", b"\x82" + size + zlib.compress(text), b"\x8a" + size + stream, None)
    assert decode(kind, *cells) == ["", "short", text.decode(), text.decode(), None]
    assert decode(SourceType("bytes", form="compressed"), *cells[1:]) == [b"short", text, text, None]


@pytest.mark.parametrize(
    "cell",
    [
        b"\x82", b"\x80", b"\x85\0\0\0\0\1", b"\x12\0\1a", b"\xff\xff", b"\x81\x05" + zlib.compress(b"four"),
        b"\x81\x03" + zlib.compress(b"four"), b"\x81\x04" + zlib.compress(b"four")[:-1], b"\x81\x04" + zlib.compress(b"four") + b"x",
        b"\x84\xff\xff\xff\xff" + zlib.compress(b"four"), b"\x81\x04four",
    ],
)  # fmt: skip
def test_corrupt_compressed_values_are_a_fault(cell):
    """Of their head, their length or their stream; no more than was declared is unpacked."""
    with pytest.raises(ValueFault):
        decode(SourceType("bytes", form="compressed"), b"\0fine", cell)


def test_a_small_value_that_unpacks_to_much_is_cut_at_its_declared_length():
    """64 MiB of zeros in 64 KiB cost no memory."""
    bomb = zlib.compress(bytes(64 << 20))
    with pytest.raises(ValueError, match="says that it holds 16 bytes"):
        unpacked(b"\x81\x10" + bomb)


def test_a_compressed_value_larger_than_any_column_is_not_unpacked():
    """A column of a row group holds 2 GiB."""
    with pytest.raises(ValueError, match="which no column of the lake can"):
        unpacked(b"\x84\x80\0\0\0" + zlib.compress(b"four"))


def old_datetime(text):
    return int(text).to_bytes(8, "little")


def test_temporals_of_before_mysql_56_are_read():
    """Decimal digits in a number, the TIME signed."""
    kind = SourceType("datetime", form="old")
    assert decode(kind, old_datetime("20240229123456"), old_datetime("0"), None) == [
        dt.datetime(2024, 2, 29, 12, 34, 56), None, None,  # noqa: DTZ001 - DATETIME has no zone
    ]  # fmt: skip
    assert decode(SourceType("timestamp", form="old"), b"\1\0\0\0", bytes(4)) == [
        dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), None,
    ]  # fmt: skip
    times = [(value & 0xFFFFFF).to_bytes(3, "little") for value in (8385959, -8385959, -1, 0, 123456)]
    assert decode(SourceType("time", form="old"), *times, None) == [
        "838:59:59", "-838:59:59", "-00:00:01", "00:00:00", "12:34:56", None,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["20241301000000", "20240132000000", "20240101240000", "20240101006000", str(2**62)])
def test_old_temporals_with_impossible_parts_are_a_fault(text):
    """So would be values that a fraction has moved."""
    for policy in ({}, {"zero_dates": "string"}):
        kind = SourceType("datetime", form="old", as_text=bool(policy))
        with pytest.raises(ValueFault):
            decode(kind, old_datetime(text), **policy)
    with pytest.raises(ValueFault):
        decode(SourceType("time", form="old"), (126060).to_bytes(3, "little"))


def fraction(moment, scale):
    """A fraction's bytes and its text."""
    size = (scale + 1) // 2
    micros = moment.microsecond // 10 ** (6 - scale) * 10 ** (6 - scale)
    return (micros // 100 ** (3 - size)).to_bytes(size, "big"), f".{micros:06d}"[: 1 + scale] if scale else ""


@UNTIMED
@given(st.datetimes(), st.integers(0, 6))
def test_dates_as_text_are_those_of_the_calendar(moment, scale):
    """DATE and DATETIME with fractions of every length."""
    fraction_bytes, shown = fraction(moment, scale)
    day = moment.date().isoformat()
    date = (moment.year << 9 | moment.month << 5 | moment.day).to_bytes(3, "little")
    assert decode(SourceType("date", as_text=True), date, bytes(3), None) == [day, "0000-00-00", None]
    number = (moment.year * 13 + moment.month) << 22 | moment.day << 17
    number |= moment.hour << 12 | moment.minute << 6 | moment.second
    kind = SourceType("datetime", scale=scale, as_text=True)
    assert decode(kind, (number + (1 << 39)).to_bytes(5, "big") + fraction_bytes) == [f"{day} {moment:%H:%M:%S}{shown}"]


@UNTIMED
@given(st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2106, 2, 7)), st.integers(0, 6))  # noqa: DTZ001 - UTC is put in below
def test_timestamps_as_text_are_shown_in_utc(moment, scale):
    """Up to 2106, which MariaDB holds; zero is the zero date."""
    fraction_bytes, shown = fraction(moment, scale)
    seconds = int(moment.replace(tzinfo=dt.UTC, microsecond=0).timestamp()).to_bytes(4, "big")
    zero = "0000-00-00 00:00:00" + shown.translate(str.maketrans("123456789", "0" * 9))
    kind = SourceType("timestamp", scale=scale, as_text=True)
    found = decode(kind, seconds + fraction_bytes, bytes(4 + len(fraction_bytes)))
    assert found == [f"{moment:%Y-%m-%d %H:%M:%S}{shown}", zero]


@UNTIMED
@given(st.binary(min_size=8, max_size=8), st.integers(0, 6))
def test_any_bytes_of_a_date_are_text_or_a_fault(cell, scale):
    """Nothing is written outside of the column."""
    for kind, size in (("date", 3), ("datetime", 5), ("timestamp", 4)):
        for form in ("", "old") if kind != "date" else ("",):
            width = {"datetime": 8, "timestamp": 4}.get(kind, 3) if form else size + (scale + 1) // 2
            source_type = SourceType(kind, scale=0 if form else scale, form=form, as_text=True)
            try:
                (text,) = decode(source_type, cell[:width])
            except ValueFault:
                continue
            assert len(text) == (10 if kind == "date" else 19 + (1 + source_type.scale if source_type.scale else 0))
