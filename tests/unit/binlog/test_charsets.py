"""Character sets over bytes made by hand; the integration tests ask real servers for every sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.binlog.charsets.registry import READABLE, decoded
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.text import TextCodec
from cdc_lib.model.value_policy import ValuePolicy

UNTIMED = settings(deadline=None, max_examples=60)
"""The first call compiles."""
PYTHON = {"utf8mb4": "utf-8", "ascii": "ascii", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}


TEXT = st.text(max_size=12).map(lambda text: text.encode("utf-8", "ignore"))
CELLS = TEXT | st.binary(max_size=12) | st.tuples(TEXT, st.binary(min_size=1, max_size=2), TEXT).map(b"".join)


def read(charset, *cells, replaces=False):
    """Run the codec over cells in a buffer that ends in bytes of other cells."""
    data = np.frombuffer(b"".join(cell or b"" for cell in cells) + b"\xbf" * 8, np.uint8)
    length = np.array([-1 if cell is None else len(cell) for cell in cells], np.int64)
    pos = np.cumsum([0, *np.maximum(length, 0)])[:-1].astype(np.int64)
    codec = TextCodec(charset, ValuePolicy(invalid_text="replace" if replaces else "error"))
    codec.append(data, pos, length, len(cells))
    array = codec.finish()
    array.validate(full=True)
    return array.to_pylist()


@pytest.mark.parametrize("charset", sorted(PYTHON))
@UNTIMED
@given(st.lists(CELLS, max_size=5))
def test_what_is_text_is_what_python_takes_strictly(charset, cells):
    """Anything else is a fault of the first cell that is not one."""
    strict = [_strictly(cell, PYTHON[charset]) for cell in cells]
    if None not in strict:
        assert read(charset, *cells) == strict
        return
    with pytest.raises(ValueFault) as caught:
        read(charset, *cells)
    assert caught.value.row == strict.index(None)


def _strictly(cell, codec):
    try:
        return cell.decode(codec)
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("charset", sorted(READABLE))
@UNTIMED
@given(st.lists(st.none() | st.binary(max_size=9), min_size=1, max_size=4))
def test_replaced_text_is_always_text(charset, cells):
    """Whatever the bytes are, and NULL stays NULL; a cell without a fault is the same in both ways."""
    found = read(charset, *cells, replaces=True)
    assert [text is None for text in found] == [cell is None for cell in cells]
    for cell, text in zip(cells, found, strict=True):
        try:
            assert read(charset, cell) == [text]
        except ValueFault:
            assert "\ufffd" in text


def test_a_replaced_character_leaves_its_neighbours_alone():
    """Also in the cells after it."""
    assert read("utf8mb4", b"a\xffb", "é".encode(), replaces=True) == ["a\ufffdb", "é"]
    assert read("ascii", b"a\x80", b"b", replaces=True) == ["a\ufffd", "b"]
    assert read("gbk", b"a\x81", b"\xd6\xd0", replaces=True) == ["a\ufffd", "中"]
    assert read("ucs2", b"\xd8\x00\x00a", b"\x00", replaces=True) == ["\ufffda", "\ufffd"]
    assert read("eucjpms", b"\x8f\xa2\xb7", b"\x8f\xa2", replaces=True)[0] == "\uff5e"


def test_labels_are_read_in_their_own_character_set():
    """A label that is no text of it is refused."""
    assert decoded((b"a", b"\xd6\xd0", b""), "gbk") == ("a", "中", "")
    with pytest.raises(UnicodeError, match="gbk"):
        decoded((b"\x80",), "gbk")
