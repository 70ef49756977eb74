"""GTIDs made by hand: with tags, from many sources, and wrong."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.framing.tagged_gtid import read_integer
from cdc_lib.errors import DecodeError
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.streams import SID, Binlog, integer, message, read

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_a_tag_is_between_source_and_number():
    """Sources that differ in the tag alone are different ones."""
    binlog = Binlog()
    for number, tag in ((1, b"blue"), (2, b"a" * 32), (3, b"blue")):
        binlog.tagged(number, tag).query(b"BEGIN").table_map().insert((number, b"x")).xid()
    binlog.transaction(4, (4, b"x"))
    rows, summary = read(binlog)
    assert [row["_gtid"] for row in rows] == [
        f"{UUID}:blue:1",
        f"{UUID}:{'a' * 32}:2",
        f"{UUID}:blue:3",
        f"{UUID}:4",
    ]
    assert (summary.gtid_first, summary.gtid_last) == (f"{UUID}:blue:1", f"{UUID}:4")
    assert rows[2]["_ts"].microsecond == 3


def test_a_window_may_have_more_sources_than_there_is_room_for_at_first():
    """The table grows, and every GTID keeps its own."""
    binlog = Binlog()
    count = 3 * packets.FIRST_SIDS
    for number in range(1, count + 1):
        body = b"\0" + struct.pack("<QQ", number, 5) + struct.pack("<Q", number) + b"\2" + bytes(23)
        binlog.event(33, body).query(b"BEGIN").table_map().insert((number, b"")).xid()
    rows, summary = read(binlog)
    assert [row["_gtid"][:8] for row in rows] == [struct.pack("<I", n).hex() for n in range(1, count + 1)]
    assert [int(row["_gtid"].rpartition(":")[2]) for row in rows] == list(range(1, count + 1))
    assert summary.transactions == count


@pytest.mark.parametrize("value", [0, 1, 127, 128, 1 << 14, (1 << 35) - 1, 1 << 49, (1 << 56) - 1, 1 << 56, 1 << 62])
def test_an_integer_of_variable_length_round_trips(value):
    """Over every number of bytes, and never from after its end."""
    data = integer(value)
    buffer = np.frombuffer(b"\7" + data + b"\xff" * 9, np.uint8)
    assert tuple(map(int, read_integer(buffer, 1, 1 + len(data)))) == (value, 1 + len(data))
    assert read_integer(buffer, 1, len(data))[1] == -1


def fields(*, uuid=SID, number=b"\2\4", tag=b"\6\4ab", rest=b""):
    return b"\0\0" + b"\2" + b"".join(map(integer, uuid)) + integer(2) + number[1:] + tag + rest


def test_fields_after_the_known_ones_are_ignored():
    """When the message says that they need not be known."""
    binlog = Binlog().event(42, message(fields(rest=integer(12) + b"whatever"), must_know=11))
    rows, _ = read(binlog.query(b"BEGIN").table_map().insert((1, b"x")).xid())
    assert rows[0]["_gtid"] == f"{UUID}:ab:1"
    assert rows[0]["_ts"].timestamp() == 1_700_000_000


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(message(fields(), must_know=12), id="a field that must be known"),
        pytest.param(message(fields(uuid=[256] * 16)), id="no bytes in the UUID"),
        pytest.param(message(fields(tag=b"\6" + integer(33) + b"a" * 33)), id="tag too long"),
        pytest.param(message(fields(tag=b"\6" + integer(9) + b"ab")), id="tag leaves the event"),
        pytest.param(message(fields(number=b"\2\0")), id="no number"),
        pytest.param(message(b"\0\0" + b"\4\4"), id="no UUID"),
        pytest.param(message(fields(rest=b"\2\4")), id="fields in the wrong order"),
        pytest.param(message(fields())[:-1], id="cut"),
        pytest.param(message(fields()) + b"\0", id="more than it says"),
        pytest.param(b"\4" + message(fields())[1:], id="another version"),
        pytest.param(b"", id="empty"),
    ],
)
def test_a_corrupt_tagged_gtid_stops_the_window(body):
    """Nothing is taken for its source or number."""
    with pytest.raises(DecodeError):
        read(Binlog().event(42, body).query(b"BEGIN").xid())


@pytest.mark.parametrize(("kind", "flavor"), [(35, "mysql"), (163, "mariadb"), (35, "mariadb"), (163, "mysql")])
@pytest.mark.parametrize("body", [b"", b"\xff" * 40])
def test_a_list_of_gtids_says_nothing_outside_of_a_files_header(kind, flavor, body):
    """Whatever it holds: only the one after the format description names the GTIDs before the file."""
    binlog = Binlog().transaction(1, (1, b"x")).event(kind, body).transaction(2, (2, b"y"))
    rows, summary = read(binlog, flavor=flavor)
    assert [row["id"] for row in rows] == [1, 2]
    assert summary.gtids_read is None


def mariadb_files(*named, domains=("0-1", "0-2", "7-1")):
    """Read three files of MariaDB with one transaction of each source; returns the gaps by follower."""
    progress = ScanProgress(
        Window("shop", 1, Position("bin.000001", 4), Position("bin.000009", 4)), "mariadb", checksum=False
    )
    progress.take_earlier_gtids(GtidSet.parse("mariadb", named[0]))
    for number, text in enumerate(named[1:], 2):
        for row, source in enumerate(domains):
            domain, server = map(int, source.split("-"))
            progress.sids[row, :8] = np.frombuffer(struct.pack("<II", domain, server), np.uint8)
            packets.note_gtid(progress.state, packets.RUNS, row, 10 * number + row)
        progress.state[packets.SID_COUNT] = len(domains)
        progress.closed = True
        progress.enter_file(f"bin.{number:06d}", 4)
        progress.take_earlier_gtids(GtidSet.parse("mariadb", text))
    return {gap.follower: str(gap.missing) for gap in progress.summarize().gtid_gaps}


def test_each_source_of_mariadb_counts_with_its_last_number():
    """Also one whose domain another server wrote later; a list may name fewer domains, and lower numbers."""
    first, second = "0-1-20,0-2-21,7-1-22", "0-1-30,0-2-31,7-1-32"
    assert mariadb_files("0-1-5", first, second) == {}
    assert mariadb_files("0-1-5", "0-2-21", second) == {}
    assert mariadb_files("0-1-5", "0-1-20,0-2-22", second) == {"bin.000002": "0-2-22"}
    assert mariadb_files("0-1-5", first, "0-1-31,0-2-31,7-1-32") == {"bin.000003": "0-1-31"}
    assert mariadb_files("0-1-5,3-3-3", f"{first},3-3-3", f"{second},4-4-4") == {"bin.000003": "4-4-4"}
