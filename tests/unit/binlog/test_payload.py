"""Compressed transactions made by hand: what the servers at hand do not write, and all that may be wrong in them."""

from __future__ import annotations

import contextlib
import random
import struct

import pytest
import zstandard

from cdc_lib.binlog import reader
from cdc_lib.binlog.framing.packets import LONGEST_EVENT
from cdc_lib.binlog.rows.inflate_buffer import InflateBuffer
from cdc_lib.binlog.rows.row_groups import ReadOptions
from cdc_lib.errors import CdcError, ChecksumMismatch, DecodeError, UnknownEvent, UnknownSchema
from tests.harness.binlog.streams import FILE, Binlog, body, packed_integer, read

ROWS = [(1, b"x"), (2, b"yy")]


def compressed(**options) -> Binlog:
    """A transaction, a compressed one and another."""
    binlog = Binlog().transaction(1, (0, b"first")).gtid(2)
    return binlog.payload(bytes(body(*ROWS).wire), **options).transaction(3, (9, b"last"))


def order(row):
    return row["_epoch"], row["_binlog"], row["_offset"], row["_row"]


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("portion", [1, 64, 1 << 20])
def test_a_payload_is_read_between_other_transactions(compress, portion):
    """Compressed and of the type that is not, in any portions of the wire."""
    binlog = compressed(compress=compress)
    rows, summary = read(binlog, portion=portion)
    assert [(row["id"], row["v"]) for row in rows] == [(0, b"first"), *ROWS, (9, b"last")]
    assert [row["_offset"] for row in rows[1:3]] == [binlog.starts[6]] * 2
    assert [order(row) for row in rows] == sorted({order(row) for row in rows})
    assert [row["_gtid"].rpartition(":")[2] for row in rows] == ["1", "2", "2", "3"]
    assert rows[1]["_ts"].microsecond == 2
    assert summary.transactions == 3


def test_rows_of_several_events_in_a_payload_have_increasing_numbers():
    """Of several tables too: the order key has no equal anywhere in the payload."""
    inner = Binlog(bare=True).query(b"BEGIN")
    for turn in range(50):
        inner.table_map(7 + turn % 2).insert((turn, b"a"), (turn + 100, b"b"), table_id=7 + turn % 2)
    rows, _ = read(Binlog().gtid(1).payload(bytes(inner.xid().wire)))
    keys = sorted(order(row) for row in rows)
    assert len(set(keys)) == len(rows) == 100
    assert [row["id"] % 100 for row in sorted(rows, key=order)] == [turn for turn in range(50) for _ in range(2)]


@pytest.mark.parametrize("size", [40, 64, 100, 333, 1 << 12])
def test_a_payload_larger_than_the_buffer_is_read_portion_by_portion(monkeypatch, size):
    """Also when a single event in it is larger, and small payloads stand before and after it."""
    monkeypatch.setattr(reader, "InflateBuffer", lambda: InflateBuffer(size))
    values = [(key, random.Random(key).randbytes(key * 7 % 900)) for key in range(120)]
    inner = Binlog(bare=True).query(b"BEGIN").table_map()
    for at in range(0, 120, 3):
        inner.insert(*values[at : at + 3])
    binlog = Binlog().gtid(1).payload(bytes(body((1000, b"before")).wire))
    binlog.gtid(2).payload(bytes(inner.xid().wire)).transaction(3, (2000, b"plain"))
    binlog.gtid(4).payload(bytes(body((3000, b"after")).wire))
    rows, _ = read(binlog)
    found = [(row["id"], row["v"]) for row in rows]
    assert found == [(1000, b"before"), *values, (2000, b"plain"), (3000, b"after")]
    assert [order(row) for row in rows] == sorted({order(row) for row in rows})
    assert rows == read(binlog, portion=97)[0]


def test_more_row_events_than_a_scan_notes_at_once_are_all_read(monkeypatch):
    """Plain and compressed ones in turn, with room for three records."""
    monkeypatch.setattr(reader, "_RECORDS", 3)
    binlog = Binlog()
    for number in range(1, 20):
        rows = [(10 * number + i, b"r") for i in range(5)]
        inner = Binlog(bare=True).query(b"BEGIN").table_map()
        for row in rows:
            inner.insert(row)
        binlog.gtid(number).payload(bytes(inner.xid().wire)).transaction(number, (10 * number + 5, b"p"))
    rows, _ = read(binlog, options=ReadOptions(group_rows=4))
    assert [row["id"] for row in rows] == [10 * number + i for number in range(1, 20) for i in range(6)]


def test_bytes_that_are_inflated_count_for_the_size_of_a_row_group():
    """However small they were on the wire."""
    inner = Binlog(bare=True).query(b"BEGIN").table_map()
    for key in range(10):
        inner.insert((key, bytes(5000)))
    groups = []
    binlog = Binlog().gtid(1).payload(bytes(inner.xid().wire))
    read(binlog, options=ReadOptions(group_bytes=10_000), group=groups)
    assert len(binlog.wire) < 1000
    assert groups == [2] * 5


def broken(inner: bytes, front: bytes) -> Binlog:
    """A payload whose front is given, over compressed bytes."""
    return Binlog().gtid(1).event(40, front + zstandard.compress(inner))


INNER = bytes(body(*ROWS).wire)
SIZE = len(zstandard.compress(INNER))


@pytest.mark.parametrize(
    "binlog",
    [
        pytest.param(Binlog().gtid(1).payload(INNER, size=len(INNER) + 1), id="says too much"),
        pytest.param(Binlog().gtid(1).payload(INNER, size=len(INNER) - 1), id="says too little"),
        pytest.param(Binlog().gtid(1).payload(INNER, size=0), id="says nothing is in it"),
        pytest.param(Binlog().gtid(1).payload(INNER, size=1 << 62), id="says far too much"),
        pytest.param(Binlog().gtid(1).payload(INNER[:-1]), id="last event cut"),
        pytest.param(Binlog().gtid(1).payload(INNER + b"\0"), id="a byte after the last event"),
        pytest.param(Binlog().gtid(1).payload(INNER + INNER), id="events after the end of the transaction"),
        pytest.param(Binlog().gtid(1).payload(bytes(Binlog(bare=True).gtid(2).wire) + INNER), id="a GTID inside"),
        pytest.param(Binlog().payload(INNER), id="no GTID before"),
        pytest.param(Binlog().gtid(1).payload(bytes(Binlog(bare=True).payload(INNER).wire)), id="nested"),
        pytest.param(broken(INNER, b"\2\1\0\3\2\xfc\1\1\1" + bytes([SIZE]) + b"\0"), id="value longer than its field"),
        pytest.param(broken(INNER, b"\2\1\0\1\1" + bytes([SIZE]) + b"\0"), id="no inflated size"),
        pytest.param(broken(INNER, b"\2\1\0\3\1\x50\0"), id="no size"),
        pytest.param(broken(INNER, b"\2\1\0\3\1\x50\1\1" + bytes([SIZE + 1]) + b"\0"), id="size leaves the event"),
        pytest.param(broken(INNER, b"\2\1\0\3\1\x50\1\1" + bytes([SIZE - 1]) + b"\0"), id="size ends before the event"),
        pytest.param(broken(INNER, b"\2\xfe" + b"\xff" * 8), id="negative length"),
        pytest.param(Binlog().gtid(1).event(40, b""), id="empty"),
        pytest.param(Binlog().gtid(1).event(40, b"\2\1\0\1\1\0\3\1\5\0"), id="no frame"),
    ],
)
def test_a_corrupt_transaction_payload_stops_the_window(binlog):
    """With the place of the event in the file, and no row of it counts."""
    with pytest.raises(DecodeError) as caught:
        read(binlog.transaction(9, (1, b"x")))
    assert caught.value.context["file"] == FILE
    assert caught.value.context["offset"] in binlog.starts
    assert caught.value.hint


@pytest.mark.parametrize("cut", range(1, 30, 4))
@pytest.mark.parametrize("more", [b"", b"\0", b"\x28\xb5\x2f\xfd", bytes(100)])
def test_a_truncated_frame_or_one_with_extra_bytes_stops_the_window(cut, more):
    """Though the inflater alone would not tell."""
    packed = zstandard.compress(INNER)
    changed = packed[:-cut] + more if not more else packed + more[:cut]
    size_field = packed_integer(len(INNER))
    front = b"\2\1\0\3" + bytes([len(size_field)]) + size_field + b"\1\1" + bytes([len(changed)]) + b"\0"
    with pytest.raises(DecodeError):
        read(Binlog().gtid(1).event(40, front + changed))


def test_an_inner_event_that_claims_more_than_the_payload_holds_stops_the_window():
    """Before memory is taken for it."""
    wire = bytearray(INNER)
    wire[9:13] = struct.pack("<I", 0xFFFFFFF0)
    with pytest.raises(DecodeError, match="compressed transaction") as caught:
        read(Binlog().gtid(1).payload(bytes(wire)))
    assert caught.value.context["inside"] == 0


def test_an_inner_event_longer_than_cells_can_be_found_in_stops_the_window(monkeypatch):
    """Though the payload says that it holds as much: by its header, before the rest is inflated."""
    monkeypatch.setattr(reader, "InflateBuffer", lambda: InflateBuffer(40))
    wire = bytearray(INNER)
    wire[9:13] = struct.pack("<I", LONGEST_EVENT + 1)
    with pytest.raises(DecodeError, match="compressed transaction") as caught:
        read(Binlog().gtid(1).payload(bytes(wire), size=1 << 40))
    assert caught.value.context["inside"] == 0


def test_an_inflate_buffer_grows_to_its_limit_and_no_further():
    """Events after one that made it grow lie below the limit too."""
    side = InflateBuffer(40, most=100)
    assert side.room(0) == 40
    grown = []
    for _ in range(3):
        side.double()
        grown.append(side.data.shape[0])
    assert grown == [80, 100, 100]


def test_a_compression_that_is_not_known_stops_the_window():
    """By its number."""
    front = b"\2\1\7\3\1\x50\1\1" + bytes([SIZE]) + b"\0"
    with pytest.raises(UnknownEvent, match="type 7"):
        read(broken(INNER, front))


def test_rows_of_an_unknown_table_in_a_payload_stop_the_window():
    """As they do outside."""
    inner = Binlog(bare=True).query(b"BEGIN").insert((1, b"x"), table_id=77).xid()
    with pytest.raises(UnknownSchema):
        read(Binlog().gtid(1).payload(bytes(inner.wire)))


def test_the_checksum_of_a_payload_is_verified():
    """It covers the compressed bytes."""
    binlog = Binlog().gtid(1)
    at = len(binlog.wire) + 60
    binlog.payload(INNER)
    binlog.wire[at] ^= 1
    with pytest.raises(ChecksumMismatch):
        read(binlog)


@pytest.mark.parametrize("seed", range(200))
def test_changed_bytes_in_a_payload_never_crash_the_reader(seed):
    """Neither in the compressed bytes nor in the events that they hold."""
    chosen = random.Random(seed)
    inner = bytearray(INNER)
    if seed % 2:
        for _ in range(chosen.randint(1, 3)):
            inner[chosen.randrange(len(inner))] = chosen.choice([0, 1, 127, 128, 250, 252, 253, 254, 255])
    binlog = Binlog(checksum=False).gtid(1).payload(bytes(inner)).transaction(2, (5, b"z"))
    wire = bytearray(binlog.wire)
    if not seed % 2:
        for _ in range(chosen.randint(1, 3)):
            wire[chosen.randrange(80, 250)] = chosen.choice([0, 1, 127, 128, 250, 252, 253, 254, 255])
    with contextlib.suppress(CdcError):
        read(binlog, data=bytes(wire))
