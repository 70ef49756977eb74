"""A closed binlog file from which transactions are missing stops the source; one that a crash left does not."""

from __future__ import annotations

import struct
import time
import zlib
from datetime import timedelta
from pathlib import Path

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import BinlogIncomplete, DecodeError, SourceError, SourceUnavailable
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from cdc_lib.plan.locate import BinlogSearch
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.binlog.old_binlogs import v1_rows_without_checksums
from tests.harness.binlog.torn_files import cut, restore_of
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.replication import KINDS, server_of


@pytest.fixture(params=KINDS)
def server(request):
    with server_of(request.param, 1, "secret") as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
        server.kind = request.param
        yield server


def write(server, ids):
    for number in ids:
        server.execute(f"INSERT INTO shop.t VALUES ({number}, 0)")


def capture_of(server, folder):
    return Capture(server, "shop", folder, start="latest")


def selected(server):
    return {key: {"id": key, "v": v} for key, v in server.execute("SELECT id, v FROM shop.t")}


def cut_out(server, start, stop, *, moved=False):
    """Stop the server, take off what a file has between two positions, and start again; returns what puts it back.

    ``moved`` writes the new positions into the events after it, as a program that copies events does.
    """
    server._end(kill=False)
    path = Path(server.data_dir) / start.file
    whole = path.read_bytes()
    data = bytearray(whole[: start.offset] + whole[stop.offset :])
    at = start.offset
    while moved and at < len(data):
        length, place = struct.unpack_from("<II", data, at + 9)
        if place:
            struct.pack_into("<I", data, at + 13, at + length)
            struct.pack_into("<I", data, at + length - 4, zlib.crc32(data[at : at + length - 4]))
        at += length
    path.write_bytes(data)
    server.start()
    return restore_of(server, path, whole)


def refused(capture):
    """Run until it stops; returns the error."""
    with pytest.raises(BinlogIncomplete) as caught:
        drain_all(capture)
    return caught.value


@pytest.mark.parametrize("read_before", [0, 3])
def test_a_closed_file_that_lost_its_last_transactions_stops_the_source_until_it_is_whole(
    server, read_before, tmp_path
):
    """Each time it is tried, and nothing is acknowledged; whole again, it is read to its end."""
    capture, lake = capture_of(server, tmp_path), Lake("t")
    drain_all(capture)
    write(server, range(1, read_before + 1))
    drain_all(capture)
    write(server, range(11, 14))
    end = capture.head()
    write(server, range(21, 28))
    last = capture.facts().gtid_set
    server.execute("FLUSH BINARY LOGS")
    write(server, [31])
    restore = cut(server, end)
    errors = [refused(capture_of(server, tmp_path)) for _ in range(2)]
    assert str(errors[0]) == str(errors[1])
    assert not errors[0].retryable
    context = errors[0].context
    assert (context["file"], context["offset"]) == (end.file, end.offset)
    follower = f"{end.file[:-6]}{end.file_number + 1:06d}"
    assert f"cdc cursor rewind shop --position {follower}:4" in errors[0].hint
    if server.kind == "mysql without GTIDs":
        assert "its end is missing" in errors[0].message
    else:
        assert last.rpartition("-")[2] in errors[0].message
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).position <= end
    restore()
    whole = capture_of(server, tmp_path)
    drain_all(whole)
    lake.merge_all(whole)
    assert lake.rows == selected(server)


def test_a_transaction_cut_out_of_a_closed_file_leaves_events_that_are_not_where_they_say(server, tmp_path):
    """Each event has the position of its end, with and without GTIDs: nothing after the cut is read."""
    capture = capture_of(server, tmp_path)
    drain_all(capture)
    write(server, [1])
    start = capture.head()
    write(server, [2])
    stop = capture.head()
    write(server, [3])
    server.execute("FLUSH BINARY LOGS")
    write(server, [4])
    cut_out(server, start, stop)
    with pytest.raises(DecodeError, match="a length or a position is wrong") as caught:
        drain_all(capture_of(server, tmp_path))
    assert (caught.value.context["file"], caught.value.context["offset"]) == (start.file, start.offset)


@pytest.mark.parametrize("server", ["mysql with GTIDs", "mariadb"], indirect=True)
@pytest.mark.parametrize("read_before", [0, 3])
def test_gtids_show_a_missing_transaction_also_where_all_positions_fit(server, read_before, tmp_path):
    """The file ends in a ROTATE; the next one names what it lacks. Whole again, it is read to its end."""
    capture, lake = capture_of(server, tmp_path), Lake("t")
    drain_all(capture)
    write(server, range(1, read_before + 1))
    drain_all(capture)
    begin = capture.head()
    write(server, [11])
    # Numbers of MariaDB may have gaps: there the last one of a file is known alone.
    start = capture.head()
    write(server, [12])
    stop, lost = capture.head(), capture.facts().gtid_set
    if server.kind == "mysql with GTIDs":
        write(server, [13])
    server.execute("FLUSH BINARY LOGS")
    write(server, [21])
    restore = cut_out(server, start, stop, moved=True)
    errors = [refused(capture_of(server, tmp_path)) for _ in range(2)]
    follower = f"{start.file[:-6]}{start.file_number + 1:06d}"
    for error in errors:
        assert error.message.startswith(f"transactions are missing from {start.file} that {follower} names before it")
        assert lost.rpartition("-")[2] in error.message
        assert error.context["file"] == start.file
        assert f"cdc cursor rewind shop --position {follower}:4" in error.hint
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).position <= begin
    # A window of this file alone, as those of a backlog that are drained at the same time.
    with pytest.raises(BinlogIncomplete, match="are missing from"):
        capture_of(server, tmp_path).drain(Window(SOURCE, 1, Position(start.file, 4), Position(follower, 4)))
    restore()
    whole = capture_of(server, tmp_path)
    drain_all(whole)
    lake.merge_all(whole)
    assert lake.rows == selected(server)


def test_gtids_that_are_in_no_file_are_not_missing(server, tmp_path):
    """Purged ones that were set, anonymous transactions in between, other domains and servers, and numbers that go back."""
    capture, lake = capture_of(server, tmp_path), Lake("t")
    drain_all(capture)

    def goes_on(*ids):
        write(server, ids)
        drain_all(capture_of(server, tmp_path))
        server.execute("FLUSH BINARY LOGS")

    goes_on(1)
    if server.kind == "mysql with GTIDs":
        server.execute("SET GLOBAL gtid_purged = '+3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5'")
        goes_on(2)
        server.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
        server.execute("SET GLOBAL gtid_mode = 'OFF_PERMISSIVE'")
        goes_on(3)
        server.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
    elif server.kind == "mariadb":
        server.execute("SET GLOBAL gtid_strict_mode = OFF")
        for number, setting in enumerate(
            ("gtid_domain_id = 7", "server_id = 99", "gtid_seq_no = 1000", "gtid_seq_no = 5"), 2
        ):
            server.execute(f"SET STATEMENT {setting} FOR INSERT INTO shop.t VALUES ({number}, 1)")
            goes_on()
    goes_on(10)
    server.restart()
    if server.kind == "mysql with GTIDs":
        server.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")  # with ON it sends no anonymous transactions
    write(server, [11, 12])
    for number in range(13, 16):
        goes_on(number)
        server.execute("FLUSH BINARY LOGS")
    drain_all(capture)
    lake.merge_all(capture)
    assert lake.rows == selected(server)
    first = server.execute("SHOW BINARY LOGS")[0][0]
    again = Capture(server, "shop", tmp_path / "again", start={"position": f"{first}:4"}, drain={"max_window_bytes": 1})
    drain_all(again)


def test_a_search_over_such_a_file_stops_too(server, tmp_path):
    """The first transaction that was not read is among those that are missing."""
    capture = capture_of(server, tmp_path)
    write(server, range(1, 4))
    end = capture.head()
    found = BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())
    gtids = found.at(end).gtid_set
    write(server, range(21, 28))
    server.execute("FLUSH BINARY LOGS")
    write(server, [31])
    cut(server, end)
    found = BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())
    if server.flavor == "mysql":  # of the other one, any transaction of the last hour may be the first
        with pytest.raises(BinlogIncomplete):
            found.by_time(found.facts.clock)
    if gtids:
        with pytest.raises(BinlogIncomplete):
            found.by_gtid(GtidSet.parse(server.flavor, gtids))


def test_the_gap_is_left_out_by_the_command_that_the_error_names(server, tmp_path):
    """Nobody has the file: what is after it is read, and a new snapshot would bring the rest."""
    capture = capture_of(server, tmp_path)
    drain_all(capture)
    write(server, [1])
    end = capture.head()
    write(server, [2])
    server.execute("FLUSH BINARY LOGS")
    write(server, [3])
    cut(server, end)
    hint = refused(capture_of(server, tmp_path)).hint
    place = hint.partition("--position ")[2].partition(",")[0]
    after = capture_of(server, tmp_path)
    requests.rewind(after.pipeline, StartAt(position=place), by="test", why="nobody has the file")
    drain_all(after)
    assert after.pipeline.cursors.load(SOURCE, DRAIN).position == after.head()


def test_files_of_a_server_that_was_killed_are_read_on(server, tmp_path):
    """They end without a ROTATE or STOP as well, once with changes that were not read and once without."""
    capture, lake = capture_of(server, tmp_path), Lake("t")
    drain_all(capture)
    for number in range(1, 7, 2):
        write(server, [number])
        if number == 3:
            drain_all(capture)
        server.restart(kill=True)
        write(server, [number + 1])
    after = capture_of(server, tmp_path)
    drain_all(after)
    lake.merge_all(after)
    assert lake.rows == selected(server)
    assert len(lake.rows) == 6


def test_a_file_of_mysql_5_5_on_a_current_server_is_read(tmp_path):
    """Its FORMAT_DESCRIPTION ends with the lengths of post-headers, where later ones have a checksum algorithm."""
    with server_of("mysql without GTIDs", 1, "secret") as server:
        server.execute("CREATE DATABASE db")
        server.execute("CREATE TABLE db.a (id INT PRIMARY KEY, v VARCHAR(20))")
        server._end(kill=False)
        folder, old = Path(server.data_dir), v1_rows_without_checksums()
        newest = max(folder.glob("binlog.0*"))
        name = f"binlog.{int(newest.name[-6:]) + 1:06d}"
        wire, events = bytes(old.wire), b""
        while wire:
            size = int.from_bytes(wire[:3], "little")
            events, wire = events + wire[5 : 4 + size], wire[4 + size :]
        (folder / name).write_bytes(b"\xfebin" + events)
        assert (folder / name).stat().st_size == old.offset
        with (folder / "binlog.index").open("a") as index:
            index.write(f"./{name}\n")
        server.start()
        capture = Capture(server, "db", tmp_path)
        follower = f"binlog.{int(name[-6:]) + 1:06d}"
        window = Window(SOURCE, 1, Position(name, 4), Position(follower, 4))
        rows = capture.rows(capture.drain(window), "a")
        assert [(row["_op"], row["id"], row["v"]) for row in rows] == [
            ("c", 1, "x"), ("c", -2, None), ("u", 1, "y"), ("d", -2, None), ("u", 3, "z"), ("d", 3, "z"),
        ]  # fmt: skip
        assert struct.unpack("<I", events[:4])[0] == rows[0]["_ts"].timestamp()


@pytest.mark.parametrize("server", ["mysql with GTIDs", "mariadb"], indirect=True)
def test_a_file_that_the_server_lists_and_does_not_have_is_named_with_a_hint(server, tmp_path):
    """A purge that came in between passes; a file that is missing on the disk is purged by hand."""
    capture = capture_of(server, tmp_path)
    drain_all(capture)
    for number in range(3):
        write(server, [number])
        server.execute("FLUSH BINARY LOGS")
    files = [row[0] for row in server.execute("SHOW BINARY LOGS")]
    (Path(server.data_dir) / files[1]).unlink()
    with pytest.raises(SourceError, match="PURGE BINARY LOGS TO"):
        drain_all(capture)
    (Path(server.data_dir) / files[0]).unlink()
    found = BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())
    with pytest.raises(SourceUnavailable, match="PURGE BINARY LOGS TO") as caught:
        found.by_time(found.facts.clock)
    assert caught.value.context["file"] == files[0]
    deadline = time.monotonic() + 60
    while server.execute("SHOW BINARY LOGS")[0][0] != files[2]:  # a session that ended a moment ago may hold one
        assert time.monotonic() < deadline
        server.execute(f"PURGE BINARY LOGS TO '{files[2]}'")
        time.sleep(0.2)
    found = BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())
    later = found.facts.clock + timedelta(minutes=1)  # the times of a binlog are whole seconds
    assert found.by_time(later).position.file in files[2:]
