"""A source that begins while XA transactions are prepared: it waits for them, and never misses their rows in silence."""

from __future__ import annotations

import threading
import time

import pytest

from cdc_lib import requests
from cdc_lib.config import Credentials
from cdc_lib.errors import MergeError, SourceUnavailable, UnsupportedServer
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql import xa_recover
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import findings_of
from cdc_lib.steps import plan as steps
from tests.harness.binlog import xa
from tests.harness.binlog.capture import SOURCE, Capture

XID = "X'6265',X'',1"


@pytest.fixture
def begin(any_server, database, tmp_path):
    """Returns a source over a table in which a prepared transaction holds a row."""

    def capture(start):
        capture = Capture(any_server, database, tmp_path, start=start)
        capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
        xa.prepare(any_server, database, "'be'", "INSERT INTO a VALUES (1)")
        return capture

    yield capture
    xa.rollback_all(any_server)


def drained(capture):
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")


@pytest.mark.parametrize("start", ["snapshot", "latest"])
def test_a_source_does_not_begin_while_a_transaction_stays_prepared(begin, monkeypatch, start):
    """The error names it and may be gone the next time; the doctor shows it."""
    monkeypatch.setattr(xa_recover, "WAIT_SECONDS", 0.5)
    capture = begin(start)
    with pytest.raises(SourceUnavailable) as caught:
        capture.pipeline.plan(by="test")
    assert XID in str(caught.value)
    assert [found for found in findings_of(capture.pipeline) if found.level == "warning" and XID in found.what]
    cursor = capture.pipeline.cursors.load(SOURCE, DRAIN)
    assert cursor is None or not (cursor.snapshots or cursor.in_flight)
    xa.commit(capture.server, "'be'")
    capture.pipeline.plan(by="test")
    assert not [found for found in findings_of(capture.pipeline) if XID in found.what]


def test_a_snapshot_starts_after_the_commit_that_it_waited_for(begin):
    """The commit lies in the first window without its rows; the snapshot has read them."""
    capture = begin("snapshot")
    decided = threading.Event()

    def decide():
        time.sleep(1)
        xa.commit(capture.server, "'be'")
        decided.set()

    threading.Thread(target=decide).start()
    units = capture.pipeline.plan(by="test")
    assert decided.is_set()
    assert [unit.table for unit in units if isinstance(unit, SnapshotTask)] == ["a"]
    drained(capture)
    drained(capture)  # the window with the commit
    (manifest,) = capture.chunks(units[0])
    assert capture.ops(manifest, "a") == [("r", 1)]
    plan = capture.pipeline.plan_merge(by="test")
    assert len(plan.batches) == 2


def test_a_commit_whose_rows_are_in_no_batch_stops_the_merge(begin, monkeypatch):
    """As when it slipped through between two looks; the lake cursor stays."""
    monkeypatch.setattr(steps, "facts_without_prepared", lambda _server, _credentials, facts: facts)
    capture = begin("latest")
    capture.pipeline.plan(by="test")
    before = capture.head()
    xa.commit(capture.server, "'be'")
    drained(capture)
    with pytest.raises(MergeError) as caught:
        capture.pipeline.plan_merge(by="test")
    assert caught.value.context["xid"] == XID
    assert caught.value.context["file"] == before.file
    assert caught.value.context["offset"] > before.offset
    assert "snapshot" in caught.value.hint
    with pytest.raises(MergeError):
        capture.pipeline.plan_merge(by="again")
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    requests.resnapshot(
        capture.pipeline, [f"{capture.database}.b"], by="test", why="its rows are not those of the other"
    )
    for _ in range(3):
        drained(capture)
    with pytest.raises(MergeError, match="prepared before this source began"):
        capture.pipeline.plan_merge(by="test")


def test_a_rollback_of_an_unknown_transaction_is_skipped(begin, monkeypatch):
    """There is nothing to miss."""
    monkeypatch.setattr(steps, "facts_without_prepared", lambda _server, _credentials, facts: facts)
    capture = begin("latest")
    capture.pipeline.plan(by="test")
    xa.rollback(capture.server, "'be'")
    drained(capture)
    assert capture.pipeline.plan_merge(by="test") is not None


def test_the_error_of_a_user_without_xa_privilege_names_the_grant(mysql_server, mysql_database, tmp_path):
    """Where the server has XA transactions at all."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute("CREATE USER blind@'%' IDENTIFIED BY 'b1ind'")
    capture.execute("GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO blind@'%'")
    try:
        blind = Pipeline(capture.config, Credentials("blind", "b1ind"), capture.store, capture.pipeline.cursors)
        xa.prepare(mysql_server, mysql_database, "'be'", "INSERT INTO a VALUES (1)")
        xa.commit(mysql_server, "'be'")
        with pytest.raises(UnsupportedServer) as caught:
            blind.plan(by="test")
        assert "XA_RECOVER_ADMIN" in caught.value.hint
        assert [found for found in findings_of(blind) if found.level == "error" and "XA_RECOVER_ADMIN" in found.hint]
        capture.execute("GRANT XA_RECOVER_ADMIN ON *.* TO blind@'%'")
        assert "a" in [getattr(unit, "table", "") for unit in blind.plan(by="test")]
    finally:
        capture.execute("DROP USER blind@'%'")
