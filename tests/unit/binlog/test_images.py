"""Row images without all columns, on events made by hand: wrong lengths are an error, never followed."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest

from cdc_lib.errors import CdcError, DecodeError
from cdc_lib.model.manifest import ABSENT
from tests.unit.binlog.test_frame import Binlog, read

TABLE = 7


def table(binlog: Binlog) -> Binlog:
    """db.a: id INT as key, v INT, j JSON."""
    names = b"\2id\1v\1j"
    body = TABLE.to_bytes(6, "little") + b"\1\0" + b"\2db\0" + b"\1a\0" + b"\3" + b"\x03\x03\xf5" + b"\1\4" + b"\6"
    body += b"\1\1\0" + bytes([4, len(names)]) + names + b"\x08\1\0"
    return binlog.event(19, body)


def rows(binlog: Binlog, kind: int, bitmaps: bytes, images: bytes) -> Binlog:
    return binlog.event(kind, TABLE.to_bytes(6, "little") + b"\1\0" + b"\2\0" + b"\3" + bitmaps + images)


def number(value: int) -> bytes:
    return struct.pack("<i", value)


DOCUMENT = b"\x00" + struct.pack("<HH", 1, 12) + struct.pack("<HH", 11, 1) + b"\x05\x07\x00" + b"k"
DIFF = b"\0\3$.k" + b"\3\5\x08\0"


def document(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def updates(*events: tuple[int, bytes, bytes], checksum: bool = True) -> Binlog:
    binlog = table(Binlog(checksum=checksum).gtid(1).query(b"BEGIN"))
    for event in events:
        rows(binlog, *event)
    return binlog.xid()


def found(binlog: Binlog, portion: int = 1 << 20):
    return [(r["_op"], r["id"], r["v"], r["j"], r.get(ABSENT)) for r in read(binlog, portion=portion)[0]]


@pytest.mark.parametrize("portion", [1, 64, 1 << 20])
def test_bitmaps_say_which_columns_an_image_has(portion):
    """NULLs are counted among the columns present; what the after image lacks is the before image's."""
    binlog = updates(
        (31, b"\1\2", b"\0" + number(1) + b"\1"),
        (31, b"\3\4", b"\2" + number(2) + b"\1"),
        (31, b"\1\1", b"\0" + number(3) + b"\0" + number(4)),
        (32, b"\1", b"\0" + number(5)),
        (30, b"\1", b"\xfe" + number(6)),
    )
    assert found(binlog, portion) == [
        ("u", 1, None, None, "++-"),
        ("u", 2, None, None, None),
        ("d", 3, None, None, "+--"),
        ("u", 4, None, None, "+--"),
        ("d", 5, None, None, "+--"),
        ("c", 6, None, None, "+-+"),
    ]


def test_differences_belong_to_the_document_before():
    """Without one the cell is not known; without a bit in front it is a document."""
    before = b"\0" + number(1) + number(2) + document(DOCUMENT)
    binlog = updates(
        (39, b"\7\7", before + b"\1\1" + b"\0" + number(1) + number(3) + document(DIFF)),
        (39, b"\7\4", before + b"\1\1" + b"\0" + document(b"")),
        (39, b"\7\4", before + b"\0" + b"\0" + document(DOCUMENT)),
        (39, b"\1\4", b"\0" + number(1) + b"\1\1" + b"\0" + document(DIFF)),
        (39, b"\1\2", b"\0" + number(1) + b"\1\1" + b"\0" + number(9)),
    )
    assert found(binlog) == [
        ("u", 1, 3, '{"k": 8}', None),
        ("u", 1, 2, '{"k": 7}', None),
        ("u", 1, 2, '{"k": 7}', None),
        ("u", 1, None, None, "+-?"),
        ("u", 1, 9, None, "++-"),
    ]


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ((31, b"\0\7", b"\0" + number(1)), "no column"),
        ((30, b"\0", b""), "has no value"),
        ((31, b"\2\4", b"\0" + number(1) + b"\1"), "without the table's key"),
        ((32, b"\2", b"\0" + number(1)), "without the table's key"),
        ((31, b"\1\2", b"\0" + number(1)), "leaves the event"),
        ((31, b"\1\2", b"\0" + number(1) + b"\0\1"), "leaves the event"),
        ((39, b"\1\2", b"\0" + number(1)), "options"),
        ((39, b"\1\2", b"\0" + number(1) + b"\2\1\0" + number(1)), "options"),
        ((39, b"\1\2", b"\0" + number(1) + b"\1"), "options"),
        ((39, b"\5\4", b"\2" + number(1) + b"\1\1\0" + document(DIFF)), "options"),
        ((39, b"\5\4", b"\0" + number(1) + document(DOCUMENT) + b"\1\1\0" + document(b"\0\3$.x\3\5\1\0")), "column j"),
        ((39, b"\5\4", b"\0" + number(1) + document(DOCUMENT) + b"\1\1\0" + document(b"\0\3$.k\3\5\1")), "column j"),
        ((39, b"\5\4", b"\0" + number(1) + document(DOCUMENT) + b"\1\1\0" + document(b"\0\3$.k\1\5")), "column j"),
        ((39, b"\5\4", b"\0" + number(1) + document(b"\0\xff") + b"\1\1\0" + document(DIFF)), "column j"),
        ((39, b"\5\4", b"\0" + number(1) + document(DOCUMENT) + b"\1\1\0" + b"\xff\0\0\0"), "leaves the event"),
    ],
)
def test_a_corrupt_row_image_stops_the_window_with_its_position(event, fault):
    """No byte after the event is taken for its own."""
    binlog = updates((31, b"\1\2", b"\0" + number(1) + b"\1"), event)
    with pytest.raises(DecodeError, match=fault) as caught:
        read(binlog)
    assert caught.value.context["offset"] == binlog.starts[4]
    assert caught.value.context["table"] == "db.a"


@pytest.mark.parametrize("seed", range(300))
def test_changed_bytes_never_crash_the_reader(seed):
    """Without checksums every lie reaches the kernels; each ends in an error of the tree, or in rows."""
    draw = random.Random(seed)
    before = b"\0" + number(1) + number(2) + document(DOCUMENT)
    binlog = updates(
        (39, b"\7\7", before + b"\1\1" + b"\0" + number(1) + number(3) + document(DIFF)),
        (31, b"\1\2", b"\0" + number(1) + b"\1"),
        (30, b"\3", b"\0" + number(1) + number(1)),
        checksum=False,
    )
    wire = bytearray(binlog.wire)
    for _ in range(draw.randint(1, 3)):
        wire[draw.randrange(binlog.starts[3], len(wire))] = draw.choice([0, 1, 4, 7, 39, 127, 250, 252, 253, 254, 255])
    with contextlib.suppress(CdcError):
        read(binlog, data=bytes(wire))
