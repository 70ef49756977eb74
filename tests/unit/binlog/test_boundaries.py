"""Boundaries of handmade binlogs: clocks that go back, transactions of an hour, GTIDs out of order, and broken bytes."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.framing.boundary_scan import Boundary, BoundaryScan, SearchTarget
from cdc_lib.binlog.framing.file_header import gtid_list, previous_gtids, read_file_header
from cdc_lib.errors import DecodeError, PositionNotFound, SourceError
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from tests.harness.binlog.binlog_files import BinlogFiles
from tests.harness.binlog.streams import FILE, SID, Binlog, Wire

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def written(*transactions: tuple[int, int], anonymous: int = 0) -> tuple[Binlog, list[int]]:
    """Write (GTID number, commit time in seconds) and return the binlog and where each transaction begins; 0: no GTID."""
    binlog, starts = Binlog(), []
    for number, time in transactions:
        starts.append(binlog.offset)
        body = b"\0" + SID + struct.pack("<Q", number) + b"\2" + bytes(16) + (time * 1_000_000).to_bytes(7, "little")
        binlog.event(33 if number else 34, body)
        binlog.query(b"BEGIN").table_map().insert((1, b"x")).xid()
    return binlog, starts


def search(binlog: Binlog, wanted: SearchTarget, portion: int = 1 << 20) -> Boundary:
    scan = BoundaryScan("shop", "mysql", FILE, Position(FILE, binlog.offset), wanted, checksum=True)
    return scan.run(Wire(bytes(binlog.wire) + b"\x01\0\0\0\xfe", portion))


def gtids(*numbers: int) -> GtidSet:
    return GtidSet.of("mysql", [(UUID, (n, n)) for n in numbers])


@given(st.lists(st.integers(1, 60), max_size=12), st.integers(0, 61), st.sampled_from([1, 13, 1 << 20]))
def test_a_time_is_found_before_the_first_transaction_of_it_or_later(times, wanted, portion):
    """Whatever the clock did: nothing of that time or later lies before the place."""
    binlog, starts = written(*enumerate(times, 1))
    found = search(binlog, EPOCH + timedelta(seconds=wanted), portion)
    first = next((i for i, time in enumerate(times) if time >= wanted), None)
    assert found.position.offset == (binlog.offset if first is None else starts[first])
    assert found.found == (first is not None)
    before = times if first is None else times[:first]
    assert found.time == (EPOCH + timedelta(seconds=before[-1]) if before else None)
    assert found.gtids == gtids(*range(1, len(before) + 1))


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 9)))
def test_gtids_are_found_before_the_first_transaction_that_is_not_in_the_set(order, wanted):
    """Also where transactions stand in another order than their numbers."""
    binlog, starts = written(*((number, 5) for number in order))
    found = search(binlog, gtids(*wanted))
    first = next((i for i, number in enumerate(order) if number not in wanted), None)
    assert found.position.offset == (binlog.offset if first is None else starts[first])
    assert found.gtids == gtids(*(order if first is None else order[:first]))


def test_what_has_no_gtid_counts_as_read_up_to_the_last_transaction_of_the_set():
    """Behind it, nobody knows, so that it is read again."""
    binlog, starts = written((1, 1), (0, 2), (2, 3), (0, 4), (3, 5))
    assert search(binlog, gtids(1, 2)).position.offset == starts[3]
    assert search(binlog, gtids(1)).position.offset == starts[1]


@given(st.data())
def test_a_position_is_moved_back_to_the_beginning_of_its_transaction(data):
    """Any beginning of an event will do; nothing else will."""
    binlog, starts = written((1, 1), (2, 2), (3, 3))
    offset = data.draw(st.integers(4, binlog.offset))
    inside = offset in binlog.starts or offset == binlog.offset
    if not inside:
        with pytest.raises(PositionNotFound):
            search(binlog, Position(FILE, offset))
        return
    expected = binlog.offset if offset == binlog.offset else max(s for s in starts if s <= offset)
    assert search(binlog, Position(FILE, offset)).position.offset == expected


@given(st.data())
def test_broken_bytes_give_an_error_or_a_position_in_the_file(data):
    """Never in anything else."""
    binlog, _ = written((1, 1), (2, 2))
    wire = bytearray(binlog.wire)
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    binlog.wire = wire[: data.draw(st.integers(0, len(wire)))]
    wanted = data.draw(st.sampled_from([EPOCH + timedelta(seconds=2), gtids(1), Position(FILE, 4)]))
    with suppress(DecodeError, SourceError):
        assert search(binlog, wanted).position.offset >= 4


@given(st.binary(max_size=60))
def test_malformed_file_headers_are_refused(body):
    """With an error of the tree."""
    for read in (previous_gtids, gtid_list):
        with suppress(DecodeError):
            read(body)


def test_a_clock_of_one_server_is_asked_of_its_own_transactions_alone():
    """What another server committed has no time by it: it is known to be earlier only when one of that server comes after it."""
    binlog, starts = Binlog(), []
    for server, original in ((1, 10), (2, 99), (1, 20), (2, 5), (3, 5), (1, 30), (2, 5)):
        starts.append(binlog.offset)
        times = (7_000_000 | 1 << 55).to_bytes(7, "little") + (original * 1_000_000).to_bytes(7, "little")
        body = b"\0" + SID + struct.pack("<Q", 0) + b"\2" + bytes(16) + times
        at = len(binlog.wire)
        binlog.event(34, body)
        binlog.wire[at + 10 : at + 14] = struct.pack("<I", server)
        whole = binlog.wire[at + 5 :]
        whole[-4:] = struct.pack("<I", zlib.crc32(bytes(whole[:-4])))
        binlog.wire[at + 5 :] = whole
        binlog.query(b"BEGIN").xid()
    for wanted, expected in ((5, 0), (15, 1), (25, 3), (30, 3), (31, 6)):
        found = search(binlog, Commit(1, EPOCH + timedelta(seconds=wanted)))
        doubt = found.doubt[1] if found.doubt else found.position.offset
        assert doubt == starts[expected], wanted
        assert found.earlier == (expected > 0)


def test_times_are_not_looked_for_where_transactions_have_no_gtid_events():
    """Before MySQL 5.6.5: to walk to the end would leave all of them out."""
    binlog = Binlog().query(b"BEGIN").table_map().insert((1, b"x")).xid()
    with pytest.raises(PositionNotFound, match="without GTID events"):
        search(binlog, EPOCH)


@pytest.mark.parametrize(("wanted", "found"), [(3600, True), (3601, False)])
def test_without_commit_times_a_statement_may_have_run_for_an_hour(wanted, found):
    """MariaDB writes the second in which it began: what began an hour before may have committed at that time."""
    binlog = Binlog().mariadb_gtid(1).query(b"BEGIN").xid()
    scan = BoundaryScan(
        "shop",
        "mariadb",
        FILE,
        Position(FILE, binlog.offset),
        EPOCH + timedelta(seconds=1_700_000_000 + wanted),
        checksum=True,
    )
    assert scan.run(Wire(bytes(binlog.wire))).found is found


def test_a_file_with_a_stop_alone_has_no_first_transaction():
    """Without checksums, the event is a header and nothing else."""
    files = BinlogFiles()
    for at_start in (False, True, True):
        files.new_file(5, at_start=at_start)
    header = read_file_header(files.sent(Position(files.name(2), 4)), "mysql", files.name(2))
    assert (header.time, header.at_start, header.first) == (EPOCH + timedelta(seconds=5), True, None)


@pytest.mark.parametrize("size", range(19))
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_header_with_an_event_that_is_too_short_is_refused(number, size):
    files = BinlogFiles().new_file(5, at_start=True)
    wire = files.sent(Position(files.name(1), 4))._data
    packets = []
    while len(packets) < 3:
        end = 4 + int.from_bytes(wire[:3], "little")
        packets.append(bytes(wire[4:end]))
        wire = wire[end:]
    packets[number:] = [b"\0" + bytes([33] * size)]
    sent = b"".join(len(one).to_bytes(3, "little") + b"\0" + one for one in packets)
    with pytest.raises(DecodeError):
        read_file_header(Wire(sent), "mysql", files.name(1))


def test_a_rotate_to_where_no_file_ends_is_refused():
    binlog = Binlog()
    binlog.event(4, struct.pack("<Q", (1 << 64) - 1) + b"binlog.000002", flags=0x20)
    with pytest.raises(DecodeError, match="ROTATE"):
        search(binlog, EPOCH)
