"""A server that was reverted to a machine snapshot: same name, same file with the same creation second, other transactions."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import PositionNotFound
from cdc_lib.model.cursor import DRAIN
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers import MariaDbServer, MySqlServer

CREATED = 1_790_000_000
"""Header time of the file that both pasts of the server write."""


@pytest.fixture(scope="module", params=[MySqlServer, MariaDbServer], ids=["mysql", "mariadb"])
def revertible(request):
    """A server for these tests alone: they reset its binlog."""
    with request.param() as server:
        server.execute("CREATE DATABASE shop")
        yield server


class RevertedServer:
    """A captured server that can go back to the beginning of its second binlog file."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.revert()
        self.capture = Capture(server, "shop", folder, start="latest")
        self.plan()

    def revert(self):
        """Begin a binlog as it was at the snapshot: the file's header time is the session's, so both pasts have one."""
        self.server.execute("DROP TABLE IF EXISTS shop.a")
        self.server.execute("CREATE TABLE shop.a (id INT PRIMARY KEY, v LONGTEXT)")
        self.server.execute(self.server.in_server_syntax("RESET BINARY LOGS AND GTIDS"))
        with self.server.connect() as session, session.cursor() as cursor:
            cursor.execute(f"SET timestamp = {CREATED}")
            cursor.execute("FLUSH BINARY LOGS")
        file = self.server.execute("SHOW BINARY LOGS")[-1][0]
        # MariaDB writes a little later into a new file that it needs none before for a recovery.
        while self.server.flavor == "mariadb" and file not in self._noted_in(file):
            time.sleep(0.05)

    def _noted_in(self, file):
        events = self.server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
        return [info for _, _, kind, _, _, info in events if kind == "Binlog_checkpoint"]

    def write(self, *values, setting="timestamp = DEFAULT"):
        """Write one row in a transaction each."""
        with self.server.connect(database="shop") as session, session.cursor() as cursor:
            cursor.execute(f"SET {setting}")
            for number, value in enumerate(values):
                cursor.execute("REPLACE INTO a VALUES (%s, %s)", [number, value])

    @property
    def cursor(self):
        return self.capture.pipeline.cursors.load(SOURCE, DRAIN)

    def plan(self):
        return self.capture.pipeline.plan(by="test")

    def continue_as_the_hint_says(self, error, lake):
        """Follow the hint of an error, read everything, and compare the table with the source."""
        pipeline = self.capture.pipeline
        _, _, command = error.value.hint.partition("cdc cursor rewind shop --position ")
        position, _, command = command.partition(", then ")
        assert command.startswith("cdc snapshot shop '*.*'"), error.value.hint
        requests.rewind(pipeline, StartAt(position=position), by="test", why="")
        drain_all(self.capture)
        lake.merge_all(self.capture)
        requests.resnapshot(pipeline, ["*.*"], by="test", why="the server was reverted")
        drain_all(self.capture)
        lake.merge_all(self.capture)
        assert {key: row["v"] for key, row in lake.rows.items()} == dict(self.server.execute("SELECT * FROM shop.a"))


@pytest.fixture
def reverted(revertible, tmp_path):
    """The server with a cursor in its second file."""
    return RevertedServer(revertible, tmp_path)


def test_other_transactions_of_the_same_sizes_are_not_read_on(reverted):
    """The transaction that ends at the cursor is not the one that was read: GTIDs, sizes and file are the same."""
    reverted.write("one", "two")
    drain_all(reverted.capture)
    lake = Lake("a")
    lake.merge_all(reverted.capture)
    before = reverted.cursor
    reverted.revert()
    reverted.write("ONE", "TWO", "THREE")
    with pytest.raises(PositionNotFound, match=r"begins at .*, and .* was read there") as error:
        reverted.plan()
    assert reverted.cursor == before
    reverted.continue_as_the_hint_says(error, lake)


@pytest.mark.parametrize("former", ["x" * 7, "x" * 70, "x" * 700])
def test_where_no_transaction_ends_at_the_cursor_the_hint_leads_out(reverted, former):
    """The server refuses what it cannot read, or sends what is no event: neither comes without a way out."""
    reverted.write("one", former)
    drain_all(reverted.capture)
    lake = Lake("a")
    lake.merge_all(reverted.capture)
    reverted.revert()
    reverted.write(*(number * "y" for number in range(1, 40)))
    with pytest.raises(PositionNotFound, match="not the one that the cursor is in") as error:
        reverted.plan()
    reverted.continue_as_the_hint_says(error, lake)


def test_a_cursor_of_an_older_release_in_the_midst_of_an_event_has_a_way_out(reverted):
    """Its last transaction is not known: the drain stops, with the server's text or its own."""
    reverted.write("one", "x" * 70)
    drain_all(reverted.capture)
    lake = Lake("a")
    lake.merge_all(reverted.capture)
    old = reverted.capture.pipeline.cursors.swap(reverted.cursor, replace(reverted.cursor, last_transaction=None))
    reverted.revert()
    reverted.write(*(number * "y" for number in range(1, 40)))
    (window,) = reverted.plan()
    assert window.start == old.position
    with pytest.raises(PositionNotFound, match="refused to send the binlog") as error:
        reverted.capture.pipeline.drain(window)
    reverted.server.execute("FLUSH BINARY LOGS")
    reverted.continue_as_the_hint_says(error, lake)


def test_gtids_that_are_used_twice_are_not_acknowledged(reverted):
    """A cursor of an older release, whose last transaction is not known: MySQL's GTIDs are in two transactions."""
    if reverted.server.flavor == "mariadb":
        pytest.skip("its numbers may come out of order")
    reverted.write("one", "two", "three")
    drain_all(reverted.capture)
    lake = Lake("a")
    lake.merge_all(reverted.capture)
    cursor = reverted.cursor
    reverted.capture.pipeline.cursors.swap(cursor, replace(cursor, last_transaction=None))
    others = cursor.position.offset - cursor.last_transaction.position.offset - len("three")
    reverted.revert()
    reverted.write("one")
    fill = cursor.position.offset - reverted.capture.head().offset - others
    reverted.write("one", fill * "t")
    assert reverted.capture.head() == cursor.position
    reverted.write("it", "goes", "on")
    with pytest.raises(PositionNotFound, match=r"gave GTIDs to two transactions each: .*:3") as error:
        drain_all(reverted.capture)
    assert reverted.cursor.position == cursor.position
    reverted.continue_as_the_hint_says(error, lake)


def test_a_server_that_reads_on_is_not_refused(reverted):
    """After transactions, long ones, empty windows and ends of files; without checksums, and where they were changed."""
    server, checksum = reverted.server, reverted.server.variable("binlog_checksum")
    try:
        for values in (("one",), (), ("two", "x" * 40), ("y" * 100_000,), ("z", "z" * 60_000), ()):
            reverted.write(*values)
            drain_all(reverted.capture)
            assert reverted.cursor.last_transaction
            server.execute(f"SET GLOBAL binlog_checksum = '{'NONE' if values == ('one',) else 'CRC32'}'")
            reverted.plan()
            server.execute("FLUSH BINARY LOGS")
            drain_all(reverted.capture)
            reverted.plan()
    finally:
        server.execute(f"SET GLOBAL binlog_checksum = '{checksum}'")
    lake = Lake("a")
    lake.merge_all(reverted.capture)
    assert {key: row["v"] for key, row in lake.rows.items()} == dict(server.execute("SELECT * FROM shop.a"))


def test_a_server_that_was_killed_is_refused_only_if_it_was_reverted(reverted):
    """Its file ends at the cursor without another event; of another past, with another transaction or elsewhere."""
    reverted.write("one")
    drain_all(reverted.capture)
    reverted.server.restart(kill=True)
    reverted.plan()
    for other, evidence in (("ONE", "was read there"), ("o", "has only")):
        reverted.revert()
        reverted.write(other)
        reverted.server.restart(kill=True)
        with pytest.raises(PositionNotFound, match=evidence):
            reverted.plan()


@pytest.mark.parametrize("setting", ["binlog_transaction_compression = ON", "log_bin_compress = ON"])
def test_compressed_transactions_are_recognized(reverted, setting):
    """By their compressed bytes."""
    if (reverted.server.flavor == "mysql") != setting.startswith("binlog"):
        pytest.skip("a setting of the other server")
    reverted.server.execute(f"SET GLOBAL {setting}")
    try:
        reverted.write("x" * 1000)
        drain_all(reverted.capture)
        reverted.plan()
        reverted.revert()
        reverted.write("y" * 1000, "z")
        with pytest.raises(PositionNotFound, match="not the one that the cursor is in"):
            reverted.plan()
    finally:
        reverted.server.execute(f"SET GLOBAL {setting.replace('ON', 'OFF')}")


def test_a_last_transaction_whose_file_was_purged_is_not_asked_for(reverted):
    """The cursor is at the beginning of the next file."""
    reverted.write("one")
    drain_all(reverted.capture)
    reverted.server.execute("FLUSH BINARY LOGS")
    drain_all(reverted.capture)
    assert reverted.cursor.position.file != reverted.cursor.last_transaction.position.file
    reverted.server.purge_binlogs()
    reverted.plan()
    reverted.write("two")
    drain_all(reverted.capture)
    reverted.plan()


def test_the_same_transaction_before_a_file_of_another_past_is_not_enough(reverted):
    """After the last transaction that was read, the reverted server wrote another one before the end of the file."""
    reverted.write("one")
    drain_all(reverted.capture)
    last = reverted.cursor.last_transaction
    reverted.write("two")
    drain_all(reverted.capture)
    cursor = reverted.cursor
    last = replace(last, before=cursor.position)
    reverted.capture.pipeline.cursors.swap(cursor, replace(cursor, last_transaction=last))
    with pytest.raises(PositionNotFound, match="was not read"):
        reverted.plan()


def test_a_cursor_that_is_put_elsewhere_keeps_no_last_transaction(reverted):
    """A refill asks as of an earlier position, and a lost drain cursor is made again from the lake's: both are right."""
    reverted.write("one", "two")
    drain_all(reverted.capture)
    first = reverted.cursor
    reverted.write("three")
    drain_all(reverted.capture)
    here = reverted.cursor
    moved = replace(here, position=first.position, gtid_set=first.gtid_set)
    reverted.capture.pipeline.cursors.swap(here, moved)
    reverted.plan()
    drain_all(reverted.capture)
    assert reverted.cursor.last_transaction == here.last_transaction
