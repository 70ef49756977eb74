"""A replica that leaves replicated changes out of its binlog is refused: each of its rows would be lost without a word."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from cdc_lib import requests
from cdc_lib.errors import ReplicatedChangesNotLogged
from cdc_lib.model.cursor import DRAIN
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import facts_of, read_facts
from cdc_lib.status.overview import findings_of
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.docs.documented_grants import PASSWORD, USER, documented, make_user
from tests.harness.lake.merging import drain_all
from tests.harness.servers.replication import follow, replicated

ROWS = 25
SETTINGS = {
    # MySQL calls it log-slave-updates up to 8.0.25; a server ignores a loose setting that it does not know.
    "mysql with GTIDs": {"loose-log-replica-updates": "OFF", "loose-log-slave-updates": "OFF"},
    "mariadb": {"log-slave-updates": "OFF"},
}


@pytest.fixture(scope="module", params=SETTINGS)
def pair(request):
    with replicated(request.param, SETTINGS[request.param]) as pair:
        pair.primary.execute("CREATE DATABASE shop")
        pair.primary.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
        pair.wait("shop.t")
        if pair.kind == "mariadb":  # without it, a server that was a replica once is refused
            account = pair.standby.cdc_user
            pair.standby.execute(f"GRANT SLAVE MONITOR ON *.* TO {account}@'%'")
        yield pair


@contextmanager
def not_replicating(pair):
    """Make the standby a server that replicates from nobody, and a replica again afterwards."""
    pair.release()
    try:
        yield
    finally:
        follow(pair.kind, pair.primary, pair.standby)


def over(server, folder, **settings):
    return Capture(server, "shop", folder, **{"start": "latest", **settings})


def changes_in_binlog(server, start):
    """Return how many write events the binlog has after a position."""
    events = server.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    return sum(event[2].lower().startswith("write_rows") for event in events)


def test_a_replica_without_its_replicated_rows_is_refused_by_plan_and_doctor(pair, tmp_path):
    """25 rows reach the replica and none reaches its binlog: no source begins there, and the doctor says why."""
    capture = over(pair.standby, tmp_path, start="snapshot")
    start = facts_of(capture.config.server, capture.pipeline.credentials).binlog_end
    pair.primary.execute(f"DELETE FROM shop.t WHERE id BETWEEN 100 AND {99 + ROWS}")
    for key in range(100, 100 + ROWS):
        pair.primary.execute(f"INSERT INTO shop.t VALUES ({key}, 1)")
    pair.wait("shop.t")
    assert pair.standby.execute("SELECT COUNT(*) FROM shop.t WHERE id >= 100") == [(ROWS,)]
    assert changes_in_binlog(pair.standby, start) == 0, "every row would have been lost"
    with pytest.raises(ReplicatedChangesNotLogged, match=r"the server is a replica with log_.*=OFF") as refused:
        capture.pipeline.plan(by="test")
    assert "new snapshots" in refused.value.hint
    assert capture.pipeline.cursors.load(SOURCE, DRAIN) is None
    assert any("is a replica" in f.what and f.level == "error" for f in findings_of(capture.pipeline))


def test_a_server_that_becomes_such_a_replica_is_refused_at_the_next_step(pair, tmp_path):
    """Plan, drain and snapshot each ask: what was planned before is not read after."""
    capture = over(pair.standby, tmp_path, start="snapshot")
    with not_replicating(pair):
        units = capture.pipeline.plan(by="test")
        assert units
        found = [
            f for f in findings_of(capture.pipeline) if "is OFF, and the server replicates from no other one" in f.what
        ]
        assert [f.level for f in found] == ["ok"]
    for unit in units:
        with pytest.raises(ReplicatedChangesNotLogged, match="is a replica"):
            capture.pipeline.drain(unit)
    with pytest.raises(ReplicatedChangesNotLogged, match="is a replica"):
        capture.pipeline.plan(by="test")
    with pytest.raises(ReplicatedChangesNotLogged, match="is a replica"):
        requests.resnapshot(capture.pipeline, ["shop.t"], by="test", why="test")


def test_the_documented_user_sees_or_refuses_such_a_replica(pair, tmp_path):
    """MariaDB shows it without SLAVE MONITOR while it runs; when it is stopped the answer is unknown, which is an error."""
    pair.standby.execute(f"DROP USER IF EXISTS {USER}@'%'")
    make_user(pair.standby, documented(pair.standby.flavor))
    capture = over(pair.standby, tmp_path)
    user = capture.pipeline.credentials.__class__(USER, PASSWORD)

    def seen():
        session = connect(capture.config.server, user)
        try:
            return read_facts(session, capture.config.server)
        finally:
            session.close()

    assert seen().replicates is True
    pair.cut_off()
    try:
        facts = seen()
    finally:
        pair.standby.execute(pair.standby.in_server_syntax("START REPLICA"))
    assert facts.replicates is (True if pair.standby.flavor == "mysql" else None)
    errors = [finding for finding in judge(facts) if finding.level == "error"]
    assert len(errors) == 1
    assert ("GRANT SLAVE MONITOR" in errors[0].hint) == (pair.standby.flavor == "mariadb")


def test_a_standby_that_did_not_log_what_it_replicated_cannot_take_over(pair, tmp_path):
    """Also after its replication ended: the rows between the cursor and the takeover are in no binlog file of it."""
    before = over(pair.primary, tmp_path)
    drain_all(before)
    pair.primary.execute("REPLACE INTO shop.t VALUES (1, 7)")
    pair.wait("shop.t")
    after = over(pair.standby, tmp_path)
    cursor = after.pipeline.cursors.load(SOURCE, DRAIN)
    with (
        not_replicating(pair),
        pytest.raises(ReplicatedChangesNotLogged, match=r"answers instead of .* its binlog lacks") as refused,
    ):
        after.pipeline.plan(by="test")
    assert "cdc snapshot shop" in refused.value.hint
    assert after.pipeline.cursors.load(SOURCE, DRAIN) == cursor
