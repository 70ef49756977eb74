"""Where a source begins and continues, on one real server: times, positions, GTIDs, resets, purges and rewinds."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError, DecodeError, PositionNotFound, PositionPurged, ServerChanged, SourceError
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.window import Window
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers import MariaDbServer, MySqlServer


@pytest.fixture
def writer(any_server, database, tmp_path):
    """A table ``a`` to write to, and facts of its server."""
    any_server.execute("FLUSH BINARY LOGS")
    capture = Capture(any_server, database, tmp_path / "writer", start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    return capture


def cursor(capture, consumer=DRAIN):
    return capture.pipeline.cursors.load(SOURCE, consumer)


def ids(capture):
    """Drain all that there is from where the source begins, and return the ids that were inserted."""
    drain_all(capture)
    lake = Lake("a")
    lake.merge_all(capture)
    return sorted(lake.rows)


def test_a_source_begins_at_a_time_a_position_or_a_set_of_gtids(writer, tmp_path):
    """And reads everything from there on."""
    writer.execute("INSERT INTO a VALUES (1, 1)")
    time.sleep(1.2)
    between, head = writer.facts().clock, writer.head()
    gtids = writer.facts().gtid_set
    time.sleep(1.2)
    writer.execute("INSERT INTO a VALUES (2, 2)")
    for number, start in enumerate(({"timestamp": between}, {"position": str(head)}, {"gtid": gtids})):
        capture = Capture(writer.server, writer.database, tmp_path / str(number), start=start)
        # Without commit times a place lies an hour before the time.
        earlier = "timestamp" in start and writer.server.flavor == "mariadb"
        assert ids(capture) == ([1, 2] if earlier else [2]), start
        assert cursor(capture).gtids_known
        assert cursor(capture).moves[0].why.startswith("start: ")


def test_a_cursor_can_resume_at_the_beginning_of_the_oldest_file(writer, tmp_path):
    """Its own first events tell when it was made and what came before."""
    writer.execute("INSERT INTO a VALUES (1, 1)")
    writer.execute("FLUSH BINARY LOGS")
    oldest = writer.facts().files[-1][0]
    capture = Capture(writer.server, writer.database, tmp_path, start={"position": f"{oldest}:4"})
    capture.pipeline.plan(by="test")
    assert cursor(capture).gtids_known
    made = cursor(capture).file_times[oldest]
    writer.execute("INSERT INTO a VALUES (2, 2)")
    assert ids(capture) == [2]
    assert cursor(capture).file_times == {oldest: made}


def test_a_start_that_the_server_does_not_have_makes_no_cursor(writer, tmp_path):
    """It is refused before the first window."""
    capture = Capture(writer.server, writer.database, tmp_path, start={"position": "binlog.900000:4"})
    with pytest.raises(PositionNotFound, match="goes from"):
        capture.pipeline.plan(by="test")
    assert cursor(capture) is None
    with pytest.raises(ConfigError, match="not a set of GTIDs"):
        Capture(writer.server, writer.database, tmp_path, start={"gtid": "what"}).pipeline.plan(by="test")


def test_the_gtids_of_a_cursor_stay_exact_from_ack_to_ack(writer, tmp_path):
    """They are those that a scan of the binlog finds before its position."""
    capture = Capture(writer.server, writer.database, tmp_path, start="latest", drain={"max_window_bytes": "1KiB"})
    capture.pipeline.plan(by="test")
    for number in range(4):
        writer.execute(f"INSERT INTO a VALUES ({number}, 0)")
        writer.execute("FLUSH BINARY LOGS")
        drain_all(capture)
        here = cursor(capture)
        assert here.gtids_known
        checkpoint = requests.locate(capture.pipeline, _at(here.position)).checkpoint
        flavor = here.identity.flavor
        assert GtidSet.parse(flavor, here.gtid_set) == GtidSet.parse(flavor, checkpoint.gtid_set)
        assert here.file_times[here.position.file] == checkpoint.file_time


def _at(position):
    from cdc_lib.config.start import StartAt

    return StartAt(position=str(position))


def test_a_rewind_is_a_new_epoch_that_the_lake_follows_and_that_can_be_reverted(writer, tmp_path):
    """What was merged is merged again, in order, and the table ends as the source."""
    capture, lake = Capture(writer.server, writer.database, tmp_path, start="latest"), Lake("a")
    capture.pipeline.plan(by="test")
    start = cursor(capture).position
    writer.execute("INSERT INTO a VALUES (1, 1), (2, 2)")
    drain_all(capture)
    lake.merge_all(capture)
    writer.execute("UPDATE a SET v = 9 WHERE id = 1")
    writer.execute("DELETE FROM a WHERE id = 2")
    drain_all(capture)
    left = cursor(capture).position
    moved = requests.rewind(capture.pipeline, _at(start), by="somebody", why="a reason")
    assert (moved.epoch, moved.position) == (2, start)
    assert (moved.moves[-1].kind, moved.moves[-1].by, moved.moves[-1].why) == ("rewind", "somebody", "a reason")
    drain_all(capture)
    lake.merge_all(capture)
    assert cursor(capture, LAKE).epoch == 2
    assert {key: row["v"] for key, row in lake.rows.items()} == dict(writer.execute("SELECT id, v FROM a"))
    assert requests.rewind(capture.pipeline, None, by="somebody", why="").position == left
    assert cursor(capture).epoch == 3
    with pytest.raises(PositionNotFound):
        requests.rewind(capture.pipeline, _at(replace(left, offset=left.offset + 10**6)), by="somebody", why="")
    assert cursor(capture).epoch == 3


def test_a_rewind_can_be_reverted_only_before_its_changes_are_read(writer, tmp_path):
    """Half of what is read again would leave a row as it was in between, for ever."""
    settings = {"start": "latest", "drain": {"max_window_bytes": 1}}
    capture, lake = Capture(writer.server, writer.database, tmp_path, **settings), Lake("a")
    capture.pipeline.plan(by="test")
    start = cursor(capture).position
    writer.execute("INSERT INTO a VALUES (1, 1)")
    writer.execute("FLUSH BINARY LOGS")
    writer.execute("UPDATE a SET v = 2 WHERE id = 1")
    drain_all(capture)
    lake.merge_all(capture)
    left = cursor(capture).position
    requests.rewind(capture.pipeline, _at(start), by="test", why="")
    first, *_ = capture.pipeline.plan(by="test")
    capture.pipeline.drain(first)
    assert requests.rewind(capture.pipeline, None, by="test", why="").position == left
    lake.merge_all(capture)
    assert {key: row["v"] for key, row in lake.rows.items()} == {1: 2}
    requests.rewind(capture.pipeline, _at(start), by="test", why="")
    first, *others = capture.pipeline.plan(by="test")
    assert others
    capture.pipeline.drain(first)
    capture.pipeline.ack_drain(by="test")
    with pytest.raises(ConfigError, match=f"only those up to {first.stop} have been read"):
        requests.rewind(capture.pipeline, None, by="test", why="")
    drain_all(capture)
    lake.merge_all(capture)
    assert {key: row["v"] for key, row in lake.rows.items()} == {1: 2}
    assert left <= cursor(capture).position  # MariaDB notes the end of a file a little later


def test_a_purged_cursor_is_refused_with_two_remedies(writer, tmp_path):
    """And continues when somebody says so, leaving out what is gone."""
    capture = Capture(writer.server, writer.database, tmp_path, start="latest")
    capture.pipeline.plan(by="test")
    writer.execute("INSERT INTO a VALUES (1, 1)")
    writer.execute("FLUSH BINARY LOGS")
    deadline = time.monotonic() + 30
    while len(writer.execute("SHOW BINARY LOGS")) > 1 and time.monotonic() < deadline:
        writer.execute(f"PURGE BINARY LOGS TO '{writer.head().file}'")
        time.sleep(0.1)
    with pytest.raises(PositionPurged, match="cdc cursor rewind"):
        capture.pipeline.plan(by="test")
    oldest = writer.facts().files[0][0]
    requests.rewind(capture.pipeline, _at(f"{oldest}:4"), by="somebody", why="the rows are not needed")
    writer.execute("INSERT INTO a VALUES (2, 2)")
    assert ids(capture) == [2]


def test_a_source_goes_on_where_all_purged_files_had_been_read(writer, tmp_path):
    """An idle server purges the file in which the cursor waits; GTIDs show that nothing in it is missing."""
    capture, lake = Capture(writer.server, writer.database, tmp_path, start="latest"), Lake("a")
    capture.pipeline.plan(by="test")
    writer.execute("INSERT INTO a VALUES (1, 1)")
    drain_all(capture)
    before = cursor(capture)
    writer.execute("FLUSH BINARY LOGS")
    writer.server.purge_binlogs()
    assert before.position.file not in dict(writer.facts().files)
    drain_all(capture)
    assert cursor(capture).epoch_changes[-1].is_exact
    writer.execute("INSERT INTO a VALUES (2, 2)")
    drain_all(capture)
    lake.merge_all(capture)
    assert sorted(lake.rows) == [1, 2]


def test_a_source_goes_on_with_what_came_after_a_purge_of_read_files(writer, tmp_path):
    """Also when the server writes again before the next plan; a snapshot can be requested after it."""
    capture, lake = Capture(writer.server, writer.database, tmp_path, start="latest"), Lake("a")
    capture.pipeline.plan(by="test")
    writer.execute("INSERT INTO a VALUES (1, 1)")
    drain_all(capture)
    writer.execute("FLUSH BINARY LOGS")
    writer.server.purge_binlogs()
    writer.execute("INSERT INTO a VALUES (2, 2)")
    with pytest.raises(ServerChanged, match="the cursor continues in a new epoch: the server no longer has"):
        requests.resnapshot(capture.pipeline, [f"{writer.database}.a"], by="test", why="")
    drain_all(capture)
    lake.merge_all(capture)
    assert sorted(lake.rows) == [1, 2]
    requests.resnapshot(capture.pipeline, [f"{writer.database}.a"], by="test", why="")
    drain_all(capture)


@pytest.mark.parametrize("make", [MySqlServer, MariaDbServer])
def test_a_server_whose_binlog_was_reset_is_never_read_on(make, tmp_path):
    """Also when the new binlog has grown after the cursor, under the same names, and with windows in flight."""
    with make() as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE TABLE shop.a (id INT PRIMARY KEY, v INT)")
        capture = Capture(server, "shop", tmp_path, start="latest")
        drain_all(capture)
        server.execute("INSERT INTO shop.a VALUES (1, 1)")
        (planned,) = capture.pipeline.plan(by="test")
        assert isinstance(planned, Window)
        time.sleep(1.1)
        server.execute(server.in_server_syntax("RESET BINARY LOGS AND GTIDS"))
        for number in range(2, 40):
            server.execute(f"INSERT INTO shop.a VALUES ({number}, {number})")
        assert planned.stop < capture.head()
        with pytest.raises((SourceError, DecodeError)):
            capture.pipeline.drain(planned)
        before = cursor(capture)
        with pytest.raises(PositionNotFound, match="not the one that the cursor is in"):
            capture.pipeline.plan(by="test")
        assert cursor(capture) == before
