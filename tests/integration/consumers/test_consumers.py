"""Consumers of what real servers wrote: filters, a crash and a takeover, garbage, and the tail beside SELECT."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lib import requests
from cdc_lib.cli.main import app
from cdc_lib.config.start import StartAt
from cdc_lib.consumers.subscribe import Holder, subscribe
from cdc_lib.errors import BatchesMissing, ConsumerHeld, CursorMoved
from cdc_lib.model.cursor import LAKE
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.subscription import Interest
from cdc_lib.retention.garbage_collector import carry_out, plan_collection
from cdc_lib.store.cuts import publish
from cdc_lib.store.windows import stored_windows
from tests.harness.binlog import xa
from tests.harness.binlog.capture import SOURCE, Capture

ROOT = Path(__file__).parents[3]
LEASE = 3


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source with two tables that is followed from now on, and has drained nothing yet."""
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20), d DECIMAL(12,2))")
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    drain(capture)
    yield capture
    xa.rollback_all(any_server)


def drain(capture):
    """Plan, drain and acknowledge what there is; returns how many windows that were."""
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    return capture.pipeline.ack_drain(by="test").windows


def merge(capture):
    """Move the lake cursor as a merge does: by the cut that it publishes."""
    plan = capture.pipeline.plan_merge(by="test")
    if plan is not None:
        now = datetime.now(UTC)
        publish(capture.store, Cut(SOURCE, plan.merge_id, plan.epoch, plan.stop, None, now, ()))
        capture.pipeline.ack_lake(by="test")


def history(capture):
    """Four windows: inserts, an XA transaction that is prepared, changes beside it, and its commit."""
    capture.execute("INSERT INTO a VALUES (1, 'one', 1.5), (2, 'zwölf', NULL), (3, NULL, -7)")
    assert drain(capture) == 1
    xa.prepare(
        capture.server, capture.database, "'x1'", "INSERT INTO a VALUES (4, 'xa', 4)", "INSERT INTO b VALUES (4)"
    )
    assert drain(capture) == 1
    capture.execute("UPDATE a SET v = 'two' WHERE id = 2")
    capture.execute("INSERT INTO b VALUES (1), (2)")
    capture.execute("DELETE FROM a WHERE id = 3")
    assert drain(capture) == 1
    xa.commit(capture.server, "'x1'")
    capture.execute("DELETE FROM b WHERE id = 1")
    assert drain(capture) == 1


def open_subscription(capture, name, interest=None, **how):
    return subscribe(capture.store, capture.pipeline.cursors, SOURCE, name, interest, **how)


def fold(rows, key="id"):
    """Return what a table holds after changes in their order."""
    left = {}
    for row in rows:
        if row["_op"] == "d":
            left.pop(row[key])
        else:
            left[row[key]] = tuple(value for name, value in row.items() if not name.startswith("_"))
    return sorted(left.values())


def shown(capture, table):
    return sorted(tuple(row) for row in capture.execute(f"SELECT * FROM {table}"))


def test_two_consumers_with_filters_of_their_own_see_what_select_shows(capture):
    """Each at its own pace; the rows of the XA transaction come with its commit and bear its place."""
    history(capture)
    with (
        open_subscription(capture, "all") as everything,
        open_subscription(capture, "half", Interest(tables=("*.a",), columns=("id", "v"))) as half,
    ):
        rows, ids = {"a": [], "b": []}, []
        while batch := everything.get(1):
            for name, table in batch.tables().items():
                rows[name.rpartition(".")[2]] += table.to_pylist()
            ids.append(batch.id)
            batch.ack()
        assert len(ids) >= 3
        for table, found in rows.items():
            assert fold(found) == shown(capture, table)
            places = [(row["_binlog"], row["_offset"], row["_row"]) for row in found]
            assert places == sorted(places)
        (xa_row,) = [row for row in rows["a"] if row["id"] == 4]
        assert xa_row["_offset"] > max(row["_offset"] for row in rows["a"] if row["id"] == 3)
        batch = half.get()
        (found,) = batch.tables().values()
        assert [name for name in found.column_names if not name.startswith("_")] == ["id", "v"]
        assert fold(found.to_pylist()) == sorted(row[:2] for row in shown(capture, "a"))
        half.rollback()
        assert half.get().id == batch.id


def test_a_consumer_that_is_killed_is_followed_by_another_after_its_lease(capture):
    """It gets the unacknowledged batches again, and no others; until then errors name the dead holder."""
    history(capture)
    command = [
        sys.executable,
        "-m",
        "tests.harness.processes.consumer_process",
        str(capture.store.root),
        SOURCE,
        "audit",
        str(LEASE),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        acked, held = (process.stdout.readline().strip() for _ in range(2))
        process.kill()
    with pytest.raises(ConsumerHeld, match="the first one"):
        open_subscription(capture, "audit")
    time.sleep(LEASE + 0.5)
    with open_subscription(capture, "audit") as taken:
        batch = taken.get(1)
        assert (batch.id, acked != held) == (held, True)
        batch.ack()
        rest = taken.get()
        rest.ack()
        assert taken.get().id is None
        assert taken.cursor.position == capture.pipeline.cursors.load(SOURCE, "drain").position


def test_a_holder_whose_lease_expired_cannot_acknowledge(capture):
    """Another took over meanwhile; the cursor is where that one put it."""
    history(capture)
    slow = open_subscription(capture, "audit", holder=Holder(lease=timedelta(seconds=0.2)))
    late = slow.get(1)
    time.sleep(0.4)
    with open_subscription(capture, "audit") as quick:
        quick.get(1).ack()
        with pytest.raises(CursorMoved):
            late.ack()
        assert capture.pipeline.cursors.load(SOURCE, "audit") == quick.cursor


def test_collection_removes_garbage_and_keeps_unread_and_prepared_batches(capture):
    """The batch with the rows of the XA transaction outlives those around it until the commit is collected too."""
    history(capture)
    for info in capture.store.list(SOURCE):
        os.utime(capture.store.root / info.key, (0, 0))
    before = [window.key for window in stored_windows(capture.store, SOURCE)]
    first = capture.manifest(before[0]).window
    merge(capture)
    with open_subscription(capture, "slow") as slow:
        slow.get(1).ack()
    assert collect(capture) == {"slow": 3}
    left = [window.key for window in stored_windows(capture.store, SOURCE)]
    assert left == before[-3:]
    with open_subscription(capture, "slow") as slow:
        slow.get(1).ack()
    assert collect(capture) == {"slow": 1}
    assert [window.key for window in stored_windows(capture.store, SOURCE)] == [before[-3], before[-1]]
    with open_subscription(capture, "slow") as slow:
        rest = slow.get()
        assert [(row["_op"], row["id"]) for row in rows_of(rest, "b")] == [("c", 4), ("d", 1)]
        rest.ack()
    assert collect(capture) == {}
    assert stored_windows(capture.store, SOURCE) == []
    assert capture.pipeline.drain(first).batches == 0  # as when an old run's task is cleared
    assert not [info.key for info in capture.store.list(f"{SOURCE}/batches")]
    capture.execute("INSERT INTO b VALUES (9)")
    assert drain(capture) == 1
    with open_subscription(capture, "slow") as slow:
        assert [row["id"] for row in rows_of(slow.get(), "b")] == [9]


def test_removed_batches_stop_the_consumer_that_needs_them(capture):
    """It gets an error, and does not continue after the gap."""
    history(capture)
    windows = stored_windows(capture.store, SOURCE)
    capture.store.delete([windows[-2].key])
    with open_subscription(capture, "audit", start="earliest") as subscription:
        assert subscription.cursor.position.offset == windows[-1].start.offset
    restored = capture.pipeline.cursors.load(SOURCE, LAKE)
    assert restored.position.offset == windows[0].start.offset
    cursors = capture.pipeline.cursors
    held = cursors.load(SOURCE, "audit")
    cursors.swap(held, type(held)(SOURCE, "audit", 0, 1, held.identity, restored.position))
    with open_subscription(capture, "audit") as subscription:
        batch = subscription.get()
        assert batch.parts[-1].stop.offset == windows[-2].start.offset
        with pytest.raises(BatchesMissing):
            subscription.get()


def collect(capture):
    """Remove what may go and return who holds what back."""
    keep = capture.config.store.keep_batches_for
    planned = plan_collection(capture.store, capture.pipeline.cursors, SOURCE, keep, datetime.now(UTC))
    carry_out(capture.store, planned)
    return planned.holding


def rows_of(batch, table):
    return [row for name, found in batch.tables().items() if name.endswith(f".{table}") for row in found.to_pylist()]


def test_the_tail_prints_what_select_shows_and_the_statements_in_between(capture, tmp_path):
    """Folded by their keys, its columns are the source's rows as text."""
    history(capture)
    capture.execute("ALTER TABLE b ADD COLUMN w VARCHAR(5)")
    capture.execute("INSERT INTO b VALUES (7, 'wide')")
    drain(capture)
    folder = tmp_path / "sources"
    folder.mkdir()
    server = capture.config.server
    (folder / f"{SOURCE}.yaml").write_text(
        f"server: {{host: {server.host}, port: {server.port}, user: cdc, password_env: NOT_NEEDED}}\n"
        f'tables: ["{capture.database}.*"]\n'
        f'store: {{url: "file://{capture.store.root}"}}\n'
        f'lake: {{type: jdbc, uri: "jdbc:sqlite:{tmp_path}/cat.db", warehouse: "file://{tmp_path}/lake"}}\n'
    )
    done = CliRunner().invoke(app, ["--sources", str(folder), "tail", SOURCE])
    assert done.exit_code == 0, done.output
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    places = [(e["header"]["logfileName"], e["header"]["logfileOffset"]) for e in entries]
    assert places == sorted(places)
    files = {str(row[0]) for row in capture.server.execute("SHOW BINARY LOGS")}
    assert {file for file, _ in places} <= files
    (ddl,) = [entry for entry in entries if entry["isDdl"] and "ADD COLUMN" in entry["sql"]]
    assert (ddl["eventType"], ddl["header"]["schemaName"]) == ("ALTER", capture.database)
    for table in ("a", "b"):
        left = {}
        for entry in entries:
            for row in entry["rowDatas"] if entry["header"]["tableName"] == table else ():
                columns = {c["name"]: c for c in row["afterColumns"] or row["beforeColumns"]}
                (key,) = [c["value"] for c in columns.values() if c["isKey"]]
                left[key] = None if entry["eventType"] == "DELETE" else {n: c["value"] for n, c in columns.items()}
        names = [row[0] for row in capture.execute(f"SHOW COLUMNS FROM {table}")]
        expected = [
            {n: None if v is None else str(v) for n, v in zip(names, row, strict=True)} for row in shown(capture, table)
        ]
        found = sorted((row for row in left.values() if row), key=lambda row: row["id"])
        assert [{n: row.get(n) for n in names} for row in found] == sorted(expected, key=lambda row: row["id"])


def test_a_consumer_skips_a_replayed_commit_whose_rows_were_collected(capture):
    """It had them with the first commit; a consumer that begins after the rewind did not, and gets an error."""
    xa.prepare(capture.server, capture.database, "'x1'", "INSERT INTO a VALUES (4, 'xa', 4)")
    drain(capture)
    between = capture.head()
    xa.commit(capture.server, "'x1'")
    capture.execute("INSERT INTO a VALUES (5, 'after', 5)")
    drain(capture)
    with open_subscription(capture, "audit") as audit:
        while batch := audit.get():
            batch.ack()
        merge(capture)
        later = datetime.now(UTC) + timedelta(days=2)
        carry_out(capture.store, plan_collection(capture.store, capture.pipeline.cursors, SOURCE, timedelta(), later))
        requests.rewind(capture.pipeline, StartAt(position=str(between)), by="test", why="to read the commit again")
        drain(capture)
        batch = audit.get()
        (found,) = batch.tables().values()
        assert found.column("id").to_pylist() == [5]
        batch.ack()
    with open_subscription(capture, "late") as late, pytest.raises(BatchesMissing, match="in no batch"):
        late.get()
