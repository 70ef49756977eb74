"""A standby without usable GTIDs takes over: statements that run long, rotations, clocks apart. Nothing is missing."""

from __future__ import annotations

import time

import pytest

from cdc_lib.model.cursor import DRAIN
from cdc_lib.plan.locate import BinlogSearch
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.binlog.long_statement import long_statement
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.replication import KINDS, replicated
from tests.harness.servers.skew import can_be_wrong

LONG = (
    "INSERT INTO shop.t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
    "SELECT 1000 + i, IF(i = 500, GET_LOCK('until', 100), 0), 'of the statement' FROM n"
)
"""A statement that waits for a lock, and whose rows overflow a binlog file."""


def source_over(server, folder, **failover):
    rules = {"fallback_interval": "1s", **failover}
    return Capture(server, "shop", folder, start="latest", failover=rules, tables={"include": ["shop.t"]})


def selected(server):
    return {key: {"id": key, "v": v, "w": w} for key, v, w in server.execute("SELECT id, v, w FROM shop.t")}


def prepared(pair, folder):
    """Make the table, and a source that has read some of its rows, long enough after the first ones."""
    pair.primary.execute("CREATE DATABASE shop")
    pair.primary.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT, w VARCHAR(40) NULL)")
    pair.primary.execute("CREATE TABLE shop.seen (id INT PRIMARY KEY, v INT)")
    pair.wait("shop.seen")
    source = source_over(pair.primary, folder)
    drain_all(source)
    time.sleep(2.1)  # what was committed until now is earlier than where a search goes back to
    return source


def write(server, ids, text):
    for number in ids:
        server.execute(f"INSERT INTO shop.t VALUES ({number}, {number}, '{text}')")


def taken_over(pair, folder, lake, **failover):
    """Continue at the standby, to its end; returns the switch."""
    pair.promote()
    write(pair.standby, [900, 901], "of the standby")
    after = source_over(pair.standby, folder, **failover)
    drain_all(after)
    lake.merge_all(after)
    (switch,) = after.pipeline.cursors.load(SOURCE, DRAIN).epoch_changes
    return switch


@pytest.mark.parametrize("kind", KINDS)
def test_changes_during_a_statement_that_outlasts_the_fallback_are_read_after_a_failover(kind, tmp_path):
    """Its commit rotates the file, whose first event then bears the time at which the statement began."""
    with replicated(kind, settings={"max-binlog-size": 4096}) as pair:
        before, lake = prepared(pair, tmp_path), Lake("t")
        with long_statement(pair.primary, LONG):
            time.sleep(3)  # more than the fallback
            write(pair.primary, [1], "read")
            drain_all(before)
            write(pair.primary, range(2, 14), "not read")
        pair.wait("shop.seen")
        switch = taken_over(pair, tmp_path, lake)
        assert lake.rows == selected(pair.standby)
        assert len(lake.rows) == 500 + 13 + 2
        assert ("GTIDs" in switch.why) == pair.has_gtids


@pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")
@pytest.mark.parametrize("skew", [-300, 300])
def test_a_standby_whose_clock_is_minutes_off_takes_over_and_nothing_is_missing(skew, tmp_path):
    """Its files say that they were made long before, or after, what they hold."""
    with replicated("mysql without GTIDs", skews=(0, skew)) as pair:
        before, lake = prepared(pair, tmp_path), Lake("t")
        write(pair.primary, [1], "read")
        drain_all(before)
        for number in range(2, 14):
            write(pair.primary, [number], "not read")
            if number % 4 == 0:
                pair.wait("shop.seen")
                pair.standby.execute("FLUSH BINARY LOGS")
        pair.wait("shop.seen")
        pair.standby.execute("FLUSH BINARY LOGS")
        switch = taken_over(pair, tmp_path, lake)
        assert lake.rows == selected(pair.standby)
        assert "by the clock of server 1" in switch.why


@pytest.mark.needs("the C library of the tests")
@pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")
@pytest.mark.parametrize("skew", [-300, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_standby_with_a_wrong_clock_wrote_is_read_though_it_never_had_the_last_transactions(
    kind, skew, tmp_path
):
    """The last transaction read is in no binlog any more, and the standby's own have times before it, or long after it."""
    with replicated(kind, skews=(0, skew)) as pair:
        before, lake = prepared(pair, tmp_path), Lake("t")
        write(pair.primary, [1], "kept")
        pair.wait("shop.seen")
        pair.cut_off()
        write(pair.primary, [2], "lost")
        drain_all(before)
        pair.standby.execute("FLUSH BINARY LOGS")
        taken_over(pair, tmp_path, lake, on_missing_transactions="ignore")
        assert lake.rows.pop(2)["w"] == "lost"  # no server has it: somebody accepted that
        assert lake.rows == selected(pair.standby)
        assert set(lake.rows) == {1, 900, 901}


def test_a_time_during_a_long_statement_lies_before_its_transaction(tmp_path):
    """Also where the file after it says that it was made when the statement began."""
    for kind in ("mysql with GTIDs", "mariadb"):
        with replicated(kind, settings={"max-binlog-size": 4096}) as pair:
            source = prepared(pair, tmp_path / kind)
            with long_statement(pair.primary, LONG):
                time.sleep(2)
                clock = source.facts().clock
            for _ in range(3):
                pair.primary.execute("FLUSH BINARY LOGS")
                write(pair.primary, [len(selected(pair.primary))], "later")
            place = BinlogSearch(SOURCE, source.config.server, source.credentials, source.facts()).by_time(clock)
            rows = source.rows(source.drain(source.window_from(place.position)), "t")
            assert {row["id"] for row in rows} >= {1001, 1500, 500, 501, 502}
            if kind != "mariadb":
                assert len(rows) == 503
