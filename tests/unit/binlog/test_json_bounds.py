"""JSON documents at the limits of the room that is made for them."""

from __future__ import annotations

import json
import math
import struct
from decimal import Decimal

import numpy as np
import pytest

from cdc_lib.binlog.types.builders import MAX_TEXT_BYTES
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.jsonb import ROOM, JsonCodec
from tests.fuzz.samples import nested


def printed(*documents: bytes, most: int = MAX_TEXT_BYTES) -> list[str]:
    length = np.array([len(document) for document in documents])
    codec = JsonCodec(most)
    codec.append(np.frombuffer(b"".join(documents), np.uint8), np.cumsum([0, *length[:-1]]), length, len(documents))
    return codec.finish().to_pylist()


def test_a_document_of_many_long_doubles_is_printed():
    """Of more than wait for Python's formatting at once, beside shorter ones."""
    count = 65_536 + 5
    numbers = [(i + 1) / 7 * 1e-9 for i in range(count)]
    entries = b"".join(struct.pack("<BI", 11, 8 + 5 * count + 8 * i) for i in range(count))
    body = entries + struct.pack(f"<{count}d", *numbers)
    long = b"\x03" + struct.pack("<II", count, 8 + len(body)) + body
    short = b"\x0b" + struct.pack("<d", 0.1234567890123456)
    before, text, after = printed(short, long, short)
    assert before == after == "0.1234567890123456"
    assert json.loads(text) == numbers


@pytest.mark.parametrize("number", [-1.2345678901234567e-15, 1.2345678901234567e-15, -9.876543210987654e-15])
def test_the_longest_text_of_a_double_does_not_overwrite_the_next_bytes(number):
    """MySQL prints up to fifteen places of zeros before it takes an exponent."""
    values = (number, 1.5, number, number)
    entries = b"".join(struct.pack("<BH", 11, 4 + 3 * 4 + 8 * i) for i in range(4))
    body = struct.pack("<HH", 4, 4 + 3 * 4 + 4 * 8) + entries + struct.pack("<4d", *values)
    (text,) = printed(b"\x02" + body)
    assert (
        text == f"[{', '.join(str(value) if value == 1.5 else format(Decimal(repr(value)), 'f') for value in values)}]"
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_double_that_is_no_number_is_refused(number):
    """JSON has no word for it, and no server writes it."""
    with pytest.raises(ValueFault, match="no number"):
        printed(b"\x0b" + struct.pack("<d", 0.5), b"\x0b" + struct.pack("<d", number))


def test_documents_nest_as_deeply_as_the_server_allows_and_no_deeper_than_there_is_room():
    """MySQL refuses more than 100 levels."""
    assert printed(nested(100)) == ["[" * 100 + "]" * 100]
    with pytest.raises(ValueFault):
        printed(nested(200))


@pytest.mark.parametrize("kind", [b"\x02", b"\x03"])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_a_document_whose_entries_all_name_the_same_container_is_refused(kind, count):
    """Printed, it would double with every level."""
    form, wide = ("<BH", 2) if kind == b"\x02" else ("<BI", 4)
    body = b"".join(struct.pack(form, kind[0], 2 * wide) for _ in range(count))
    document = kind + struct.pack(form[0] + form[2] * 2, count, 2 * wide + len(body)) + body
    with pytest.raises(ValueFault):
        printed(document)


def test_documents_may_fill_a_row_group_up_to_its_limit():
    """The room is never more than 32-bit offsets address; short texts may need less of it than the worst would."""
    text = b"\x0c\x64" + b"x" * 100
    assert printed(*[text] * 50, most=50 * 102 + 6 * 100 + ROOM) == ['"' + "x" * 100 + '"'] * 50


def test_gaps_of_long_doubles_do_not_count_for_the_limit():
    """Once they are closed there is room again."""
    double = b"\x0b" + struct.pack("<d", 1.5e300)
    assert printed(*[double] * 200, most=200 * 8 + ROOM) == ["1.5e300"] * 200


@pytest.mark.parametrize("start", [0, 40])
def test_more_text_than_a_row_group_may_hold_is_refused_by_name(start):
    """The first document that has no place is named, however the buffer grew before."""
    text = b"\x0c\x64" + b"x" * 100
    short = b"\x04\x01"
    with pytest.raises(ValueFault, match="more than 2 GiB of text") as caught:
        printed(*[short] * start, *[text] * 1000, most=1 << 15)
    assert 0 < caught.value.row - start <= (1 << 15) // 102


def test_a_document_that_would_print_without_end_is_refused_at_the_limit_too():
    """There it cannot be distinguished from one that is too large."""
    body = struct.pack("<HH", 1, 7) + struct.pack("<BH", 2, 4)
    looped = b"\x02" + struct.pack("<HH", 3, 13) + struct.pack("<BH", 2, 4) * 3
    with pytest.raises(ValueFault):
        printed(looped, most=ROOM + 20)
    with pytest.raises(ValueFault):
        printed(b"\x02" + body, most=ROOM + 20)
