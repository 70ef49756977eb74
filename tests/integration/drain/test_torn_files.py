"""A closed binlog file that was cut off between two transactions stops the source; one that a crash left does not."""

from __future__ import annotations

import struct
import time
from datetime import timedelta
from pathlib import Path

import pytest

from cdc_lib.config.start import StartAt
from cdc_lib.errors import BinlogIncomplete, SourceError, SourceUnavailable
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from cdc_lib.plan.locate import BinlogSearch
from tests.harness.capture import SOURCE, Capture
from tests.harness.merging import Lake, drain_all
from tests.harness.old_binlogs import v1_rows_without_checksums
from tests.harness.replication import KINDS, server_of


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


def cut(server, position):
    """Stop the server, take off what a file has after a position, and start again; returns what puts it back."""
    server._end(kill=False)
    path = Path(server.data_dir) / position.file
    whole = path.read_bytes()
    assert len(whole) > position.offset
    path.write_bytes(whole[: position.offset])
    server.start()

    def restore():
        server._end(kill=False)
        path.write_bytes(whole)
        server.start()

    return restore


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
    after.pipeline.rewind(StartAt(position=place), by="test", why="nobody has the file")
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
def test_a_file_that_the_server_lists_and_does_not_have_is_named_with_the_way_out(server, tmp_path):
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
