"""The walk over packets and events, on streams made by hand: what is wrong in them is an error, never followed."""

from __future__ import annotations

import contextlib
import random
import struct
import zlib

import numpy as np
import pytest

from cdc_lib.binlog.bytes.crc32 import TABLES, crc32, crc32_by_tables
from cdc_lib.binlog.framing import packets as frame
from cdc_lib.errors import CdcError, ChecksumMismatch, DecodeError, SourceError, SourceUnavailable, UnknownSchema
from tests.harness.binlog.streams import FILE, Binlog, read


@pytest.mark.parametrize("way", {crc32, crc32_by_tables})
def test_the_checksum_is_that_of_zlib(way):
    """For every remainder of its steps, from any place in a buffer, and whatever the processor can do."""
    data = random.Random(1).randbytes(1024)
    buffer = np.frombuffer(data, np.uint8)
    for size in (*range(300), 1000):
        assert way(buffer, 3, 3 + size, TABLES) == zlib.crc32(data[3 : 3 + size])


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("portion", [1, 5, 64, 1 << 20])
def test_transactions_are_walked_in_any_portions(checksum, portion):
    """Rows, times, GTIDs and offsets come out the same."""
    binlog = Binlog(checksum=checksum).transaction(1, (1, b"x"), (2, b"yy")).transaction(2, (3, b""))
    rows, summary = read(binlog, portion=portion)
    assert [(row["_op"], row["id"], row["v"]) for row in rows] == [("c", 1, b"x"), ("c", 2, b"yy"), ("c", 3, b"")]
    assert [row["_offset"] for row in rows] == [binlog.starts[3], binlog.starts[3], binlog.starts[8]]
    assert [row["_row"] for row in rows] == [0, 1, 0]
    assert summary.transactions == 2
    assert summary.gtid_first == "00010203-0405-0607-0809-0a0b0c0d0e0f:1"
    assert summary.gtid_last.endswith(":2")
    assert summary.first_time.microsecond == 1


def test_a_window_ends_where_it_says():
    """What the server sends after it is not read."""
    binlog = Binlog().transaction(1, (1, b"x"))
    stop = binlog.offset
    binlog.transaction(2, (2, b"y"))
    rows, summary = read(binlog, stop=stop)
    assert [row["id"] for row in rows] == [1]
    assert summary.transactions == 1


def test_an_event_longer_than_cells_can_be_found_in_is_refused_by_its_header():
    """Before its bytes have come; the longest one is waited for."""
    for length, error in ((frame.LONGEST_EVENT + 1, DecodeError), (frame.LONGEST_EVENT, SourceUnavailable)):
        header = struct.pack("<IBIIIH", 1, 30, 1, length, 0, 0)
        with pytest.raises(error):
            read(Binlog(), stop=100, data=b"\xff\xff\xff\0\0" + header)


@pytest.mark.parametrize("extra", [-2, -1, 0, 1, 5000])
def test_an_event_over_several_packets_is_put_together(extra):
    """Around the size at which a second packet begins, which is then empty."""
    frame_bytes = 1 + 19 + 8 + 2 + 1 + 1 + 1 + 4 + 4 + 4  # status to checksum, around the value
    value = random.Random(1).randbytes(0xFFFFFF - frame_bytes + extra)
    binlog = Binlog().gtid(1).query(b"BEGIN")
    names = b"\2id\1v"
    body = (7).to_bytes(6, "little") + b"\1\0\2db\0\1a\0\2\x03\xfc\1\4\2" + b"\1\1\0\2\1\x3f"
    binlog.event(19, body + bytes([4, len(names)]) + names + b"\x08\1\0")
    image = b"\0" + struct.pack("<I", 9) + len(value).to_bytes(4, "little") + value
    binlog.event(30, (7).to_bytes(6, "little") + b"\1\0\2\0\2\3" + image).xid()
    binlog.gtid(2).query(b"BEGIN").table_map(8).insert((10, b"z"), table_id=8).xid()
    for portion in (1 << 20, 700_001):
        rows, _ = read(binlog, portion=portion)
        assert [row["id"] for row in rows] == [9, 10]
        assert rows[0]["v"] == value


def test_parts_of_a_packet_with_wrong_lengths_are_refused():
    """They must not be followed after the end of what was received."""
    binlog = Binlog(checksum=False)
    binlog.event(29, bytes(0xFFFFFF + 100))
    wire = bytearray(binlog.wire)
    second = 4 + 0xFFFFFF
    wire[second : second + 3] = b"\xff\xff\xff"
    with pytest.raises(DecodeError):
        read(binlog, data=bytes(wire))


@pytest.mark.parametrize("length", [1, 19, 100, 0xFFFFF0])
def test_a_full_packet_with_a_short_event_is_refused(length):
    """A packet of the greatest size holds an event that is at least as long."""
    binlog = Binlog(checksum=False)
    binlog.event(29, bytes(0xFFFFFF + 100), length=length)
    with pytest.raises(DecodeError):
        read(binlog)


def test_a_stream_that_ends_early_can_be_tried_again():
    """At every byte; no row of an unfinished window counts."""
    binlog = Binlog().transaction(1, (1, b"x"))
    for size in range(len(binlog.wire) - 1, 0, -7):
        with pytest.raises(SourceUnavailable):
            read(binlog, data=bytes(binlog.wire[:size]))


@pytest.mark.parametrize("at", range(5))
def test_a_wrong_checksum_is_reported_with_its_position(at):
    """In whichever event it is."""
    binlog = Binlog().transaction(1, (1, b"x"))
    place = sum(4 + int.from_bytes(binlog.wire[p : p + 3], "little") for p in packets(binlog)[:at])
    size = int.from_bytes(binlog.wire[place : place + 3], "little")
    wire = bytearray(binlog.wire)
    wire[place + 4 + size - 6] ^= 1
    with pytest.raises(ChecksumMismatch) as caught:
        read(binlog, data=bytes(wire))
    assert (caught.value.context["file"], caught.value.context["offset"]) == (FILE, binlog.starts[at])


def packets(binlog):
    starts, at = [], 0
    while at < len(binlog.wire):
        starts.append(at)
        at += 4 + int.from_bytes(binlog.wire[at : at + 3], "little")
    return starts


def test_the_servers_error_is_reported_with_its_text():
    """As when it has purged the file."""
    binlog = Binlog().packet(b"\xff" + struct.pack("<H", 1236) + b"#HY000" + b"no such file")
    with pytest.raises(SourceError, match=r"no such file.*1236"):
        read(binlog, stop=1000)


def test_the_end_of_the_binlog_before_the_windows_end_can_be_tried_again():
    """Nothing was read that does not exist."""
    binlog = Binlog().transaction(1, (1, b"x")).packet(b"\xfe\0\0\2\0")
    with pytest.raises(SourceUnavailable):
        read(binlog, stop=binlog.offset + 100)


@pytest.mark.parametrize("kind", [2, 15, 16, 19, 30, 31, 33, 34, 4, 162])
@pytest.mark.parametrize("size", [0, 1, 6, 8, 12, 13, 20])
def test_events_shorter_than_their_kind_are_refused(kind, size):
    """No byte after an event's end is taken for its own."""
    binlog = Binlog().event(kind, b"\xff" * size).xid()
    with pytest.raises(CdcError):
        read(binlog, stop=binlog.offset + 4000)


@pytest.mark.parametrize("seed", range(300))
def test_changed_bytes_never_crash_the_reader(seed):
    """Without checksums every lie of a length reaches the kernels; each ends in an error of the tree, or in rows."""
    chosen = random.Random(seed)
    binlog = Binlog(checksum=False).transaction(1, (1, b"xyz"), (2, b"")).transaction(2, (3, b"q" * 40))
    wire = bytearray(binlog.wire)
    for _ in range(chosen.randint(1, 3)):
        wire[chosen.randrange(len(wire))] = chosen.choice([0, 1, 127, 128, 250, 252, 253, 254, 255])
    with contextlib.suppress(CdcError):
        read(binlog, data=bytes(wire))


def test_rows_without_a_table_map_before_them_stop_the_window():
    """As at a position inside a transaction."""
    binlog = Binlog().gtid(1).query(b"BEGIN").insert((1, b"xyz")).xid()
    with pytest.raises(UnknownSchema, match="rows without a table map event before them"):
        read(binlog)


def test_a_table_may_have_the_number_that_closes_statements():
    """After 2**24 tables were opened; before its map came, an empty event with the number is stepped over."""
    dummy = (0xFFFFFF).to_bytes(6, "little") + b"\1\0" + b"\2\0"
    binlog = Binlog().gtid(1).query(b"BEGIN").event(30, dummy).table_map(0xFFFFFF)
    binlog.insert((1, b"x"), table_id=0xFFFFFF).xid()
    rows, _ = read(binlog)
    assert [row["id"] for row in rows] == [1]


def test_a_table_id_is_found_among_many():
    """The open-addressed table wraps around."""
    ids = np.full(8, -1, np.int64)
    slots = np.zeros(8, np.int64)
    for slot, table_id in enumerate((1, 9, 17, 25)):
        i = (table_id * 0x9E3779B1) & 7
        while ids[i] != -1:
            i = (i + 1) & 7
        ids[i], slots[i] = table_id, slot
    assert [int(frame.slot_of(ids, slots, table_id)) for table_id in (1, 9, 17, 25)] == [0, 1, 2, 3]
    assert frame.slot_of(ids, slots, 33) == frame.UNKNOWN


def test_times_are_the_earliest_and_the_latest_in_any_order():
    """A clock was set back; the last commit is still the last one."""
    binlog = Binlog()
    for number in (5, 9, 2, 7):
        binlog.transaction(number, (number, b"x"))
    _, summary = read(binlog)
    assert (summary.first_time.microsecond, summary.last_time.microsecond) == (2, 9)
    assert (summary.last_commit.server_id, summary.last_commit.time.microsecond) == (1, 7)
    assert (summary.gtid_first[-2:], summary.gtid_last[-2:]) == (":5", ":7")
