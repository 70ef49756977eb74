"""A standby takes over on real servers: no row is lost, none is given twice, none is stale at the end."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import pymysql
import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError, CursorMoved, SourceUnavailable, TransactionsMissing
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.window import Window
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.replication import KINDS, replicated


@pytest.fixture(params=KINDS)
def pair(request):
    with replicated(request.param) as pair:
        pair.primary.execute("CREATE DATABASE shop")
        pair.primary.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT, w VARCHAR(20) NULL)")
        pair.primary.execute("CREATE TABLE shop.seen (id INT PRIMARY KEY, v INT)")
        pair.wait("shop.seen")
        yield pair


class Workload:
    """Random changes of one server from a thread of its own, until it is stopped or the server is gone."""

    def __init__(self, server, seed):
        self.server, self.chance, self.stopping = server, random.Random(seed), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join(20)

    def _run(self):
        try:
            with self.server.connect(database="shop") as session, session.cursor() as cursor:
                while not self.stopping.is_set():
                    cursor.execute("BEGIN")
                    for _ in range(self.chance.choice((1, 1, 3, 200))):
                        cursor.execute(self._statement())
                    cursor.execute("COMMIT")
        except (pymysql.MySQLError, OSError):
            pass  # the server was killed, which is what the test is about

    def _statement(self):
        key, value = self.chance.randint(1, 60), self.chance.randint(0, 10**6)
        return self.chance.choice((
            f"REPLACE INTO t VALUES ({key}, {value}, 'a{value}')",
            f"UPDATE t SET v = {value} WHERE id = {key}",
            f"UPDATE t SET w = 'w{value}' WHERE id = {key}",
            f"DELETE FROM t WHERE id = {key}",
        ))  # fmt: skip


def source_over(server, folder, **settings):
    given = {"start": "latest", "failover": {"fallback_interval": "1s"}, **settings}
    return Capture(server, "shop", folder, tables={"include": ["shop.t"]}, **given)


def selected(server):
    rows = server.execute("SELECT id, v, w FROM shop.t")
    return {key: {"id": key, "v": v, "w": w} for key, v, w in rows}


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_a_standby_takes_over_in_the_middle_of_a_workload(pair, image, tmp_path):
    """The primary is killed while transactions are under way and windows are in flight, and the standby lags."""
    for server in (pair.primary, pair.standby):
        server.execute(f"SET GLOBAL binlog_row_image = '{image}'")
    before, lake = source_over(pair.primary, tmp_path), Lake("t")
    time.sleep(2.1)  # the standby's binlog is older than where it is gone back to
    drain_all(before)
    with Workload(pair.primary, 1):
        for _ in range(3):
            time.sleep(0.3)
            for unit in before.pipeline.plan(by="test"):
                before.pipeline.drain(unit)
            before.pipeline.ack_drain(by="test")
        lake.merge_all(before)
        pair.wait("shop.seen")
        time.sleep(0.3)
        pair.hold()
        in_flight = before.pipeline.plan(by="test")
        time.sleep(0.2)
        pair.promote()
    with Workload(pair.standby, 2):
        time.sleep(0.5)
    after = source_over(pair.standby, tmp_path)
    drain_all(after)
    cursor = after.pipeline.cursors.load(SOURCE, DRAIN)
    assert cursor.epoch == 2
    (switch,) = cursor.epoch_changes
    assert (switch.previous_end.identity.port, switch.new_start.identity.port) == (pair.primary.port, pair.standby.port)
    assert "answers instead of" in switch.why
    assert ("GTIDs" in switch.why) == pair.has_gtids == switch.is_exact
    lake.merge_all(after)
    assert after.pipeline.cursors.load(SOURCE, LAKE).position == cursor.position
    assert lake.rows == selected(pair.standby)
    for unit in in_flight:
        with pytest.raises(CursorMoved, match="epoch"):
            after.pipeline.drain(unit)
    if pair.has_gtids:
        per_gtid = Counter((c["_gtid"], c["_epoch"]) for c in lake.changes)
        assert all(count == 1 for count in Counter(gtid for gtid, _ in per_gtid).values()), "a transaction came twice"


@pytest.mark.parametrize("pair", ["mysql with GTIDs", "mariadb"], indirect=True)
def test_transactions_that_the_standby_never_had_stop_the_source(pair, tmp_path):
    """The lake holds rows that no server has; going on is for a person to decide."""
    before = source_over(pair.primary, tmp_path)
    time.sleep(2.1)
    drain_all(before)
    pair.primary.execute("INSERT INTO shop.t VALUES (1, 1, 'kept')")
    pair.wait("shop.seen")
    pair.hold()
    pair.cut_off()
    pair.primary.execute("INSERT INTO shop.t VALUES (2, 2, 'lost')")
    drain_all(before)
    pair.promote()
    asking = source_over(pair.standby, tmp_path, failover={"fallback_interval": "1s", "on_missing_transactions": "ask"})
    with pytest.raises(TransactionsMissing, match="never had") as refused:
        asking.pipeline.plan(by="test")
    cursor = before.pipeline.cursors.load(SOURCE, DRAIN)
    assert cursor.epoch == 1
    server, missing = (str(refused.value.context[name]) for name in ("server", "missing"))
    with pytest.raises(TransactionsMissing):
        asking.pipeline.plan(by="test", accepted=MissingTransactions("another server", missing))
    asking.pipeline.plan(by="a person", accepted=MissingTransactions(server, missing))
    drain_all(asking)
    cursor = asking.pipeline.cursors.load(SOURCE, DRAIN)
    assert (cursor.epoch, cursor.epoch_changes[-1].by) == (2, "a person")
    assert f"accepted that it never had {missing}" in cursor.epoch_changes[-1].why


@pytest.mark.parametrize("pair", ["mysql with GTIDs", "mariadb"], indirect=True)
def test_a_snapshot_that_was_read_further_than_the_former_binlog_is_taken_again(pair, tmp_path):
    """It shows a row that the standby never had, and no GTID of the cursor tells; another table's, read in time, stays."""
    pair.primary.execute("CREATE TABLE shop.early (id INT PRIMARY KEY)")
    tables = {"include": ["shop.t", "shop.early"]}
    settings = {"start": "snapshot", "failover": {"fallback_interval": "1s"}, "tables": tables}
    before = Capture(pair.primary, "shop", tmp_path, **settings)
    pair.primary.execute("INSERT INTO shop.t VALUES (1, 1, 'kept')")
    pair.wait("shop.seen")
    time.sleep(2.1)
    early, late = sorted(before.pipeline.plan(by="test"), key=lambda unit: unit.name)
    before.pipeline.drain(early)
    pair.primary.execute("REPLACE INTO shop.t VALUES (1, 2, 'kept')")
    pair.wait("shop.seen")
    before.pipeline.ack_drain(by="test")
    for unit in before.pipeline.plan(by="test"):
        if isinstance(unit, Window):
            before.pipeline.drain(unit)
    pair.cut_off()
    pair.primary.execute("INSERT INTO shop.t VALUES (2, 2, 'lost')")
    before.pipeline.drain(late)
    before.pipeline.ack_drain(by="test")
    assert before.pipeline.cursors.load(SOURCE, DRAIN).open_snapshots == ()
    pair.promote()
    after = Capture(pair.standby, "shop", tmp_path, **settings)
    drain_all(after)
    cursor = after.pipeline.cursors.load(SOURCE, DRAIN)
    assert cursor.epoch == 2
    assert cursor.quarantine_record("shop.early") is None
    assert "after the position at which the former server was left" in cursor.quarantine_record("shop.t").why
    (again,) = [task for task in cursor.snapshots if task.name == "shop.t" and not task.cancelled]
    (chunk,) = after.chunks(again)
    assert [row["id"] for row in after.rows(chunk, "t")] == [1]


def test_batches_of_an_old_epoch_after_its_end_are_never_merged(pair, tmp_path):
    """A task that had not heard of the switch may still write one."""
    before, lake = source_over(pair.primary, tmp_path), Lake("t")
    time.sleep(2.1)
    drain_all(before)
    pair.primary.execute("INSERT INTO shop.t VALUES (1, 1, 'both')")
    pair.wait("shop.seen")
    drain_all(before)
    end = before.pipeline.cursors.load(SOURCE, DRAIN)
    pair.cut_off()
    after = source_over(pair.standby, tmp_path)
    after.pipeline.plan(by="test")
    pair.primary.execute("INSERT INTO shop.t VALUES (2, 2, 'old primary only')")
    late = Window(SOURCE, 1, end.position, before.head())
    before.drainer.window(late, end.identity)
    drain_all(after)
    lake.merge_all(after)
    assert lake.rows == selected(pair.standby)
    assert set(lake.rows) == {1}


@pytest.mark.parametrize("pair", ["mysql with GTIDs"], indirect=True)
def test_a_standby_takes_over_after_the_configured_tries_and_no_run_fails_back_automatically(pair, tmp_path):
    """By itself when the server is gone, once; and by hand."""
    standbys = [{"host": pair.standby.host, "port": pair.standby.port}]
    rules = {"fallback_interval": "1s", "attempts": 2, "retry_delay": "0s"}
    capture, lake = source_over(pair.primary, tmp_path, standbys=standbys, failover=rules), Lake("t")
    drain_all(capture)
    pair.primary.execute("INSERT INTO shop.t VALUES (1, 1, 'both')")
    pair.wait("shop.seen")
    cursor = requests.fail_over(capture.pipeline, pair.standby.host, pair.standby.port, by="somebody")
    assert (cursor.epoch, cursor.epoch_changes[-1].by, cursor.identity.port) == (2, "somebody", pair.standby.port)
    drain_all(capture)
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).epoch == 2
    cursor = requests.fail_over(capture.pipeline, pair.primary.host, pair.primary.port, by="somebody")
    assert (cursor.epoch, cursor.identity.port) == (3, pair.primary.port)
    with pytest.raises(ConfigError, match="is not a server of"):
        requests.fail_over(capture.pipeline, "127.0.0.1", 1, by="somebody")
    pair.promote()
    pair.standby.execute("INSERT INTO shop.t VALUES (2, 2, 'standby')")
    drain_all(capture)
    cursor = capture.pipeline.cursors.load(SOURCE, DRAIN)
    assert (cursor.epoch, cursor.identity.port) == (4, pair.standby.port)
    lake.merge_all(capture)
    assert lake.rows == selected(pair.standby)
    pair.standby._end(kill=True)
    pair.primary.start()
    with pytest.raises(SourceUnavailable):
        capture.pipeline.plan(by="test")
