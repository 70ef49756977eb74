"""A snapshot that is read over several runs: other tables are merged meanwhile, and the table comes whole with its changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.consumers.rebuilt_cursors import Rebuilding
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.position import Point
from cdc_lib.retention.garbage_collector import prune_cursors
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, merge_all

OVER = datetime(2000, 1, 1, tzinfo=UTC)
"""A time at which reading ends: each run reads one chunk of each table."""

KEYS = 24


@pytest.fixture
def capture(mysql_server, mysql_database, tmp_path):
    capture = Capture(mysql_server, mysql_database, tmp_path, snapshot={"chunk_rows": 4})
    for table in ("big", "small"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    capture.begin = capture.head()
    capture.execute("INSERT INTO small VALUES (1, 0)")
    capture.execute(f"INSERT INTO big VALUES {', '.join(f'({key}, 0)' for key in range(KEYS))}")
    return capture


def rows(capture, table):
    return {key: {"id": key, "v": v} for key, v in capture.execute(f"SELECT id, v FROM {table}")}


def drain(capture, until=OVER):
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit, until=until)
    capture.pipeline.ack_drain(by="test")


def cursor(capture, consumer):
    return capture.pipeline.cursors.load(SOURCE, consumer)


def change(capture, dice, number):
    """Insert, update, delete and move rows of the large table, before and after what is read."""
    for _ in range(dice.randrange(6)):
        key, other = dice.randrange(KEYS + 6), dice.randrange(KEYS + 6)
        capture.execute(
            dice.choice(
                (
                    f"REPLACE INTO big VALUES ({key}, {number})",
                    f"DELETE FROM big WHERE id = {key}",
                    f"UPDATE big SET v = {number} WHERE id = {key}",
                    f"UPDATE IGNORE big SET id = {other} WHERE id = {key}",
                )
            )
        )
    capture.execute(f"UPDATE small SET v = {number}")


def rewound(capture):
    """Go back in the binlog while the table is read: its snapshot begins again."""
    requests.rewind(capture.pipeline, StartAt(position=str(capture.begin)), by="test", why="to look again")


def requested_again(capture):
    """Request a new snapshot while the first is read."""
    requests.resnapshot(capture.pipeline, [f"{capture.database}.big"], by="test", why="to be sure")


def lake_lost(capture):
    """Lose the lake cursor, and make it again from the last cut."""
    cursors = capture.pipeline.cursors
    capture.store.delete([layout.cursor_key(SOURCE, LAKE)])
    (made,) = Rebuilding(capture.pipeline, OVER, "test").rebuilt()
    assert made.held
    cursors.swap(None, made)


@pytest.mark.parametrize("event", [None, rewound, requested_again, lake_lost])
@pytest.mark.parametrize("seed", range(2))
def test_other_tables_are_merged_while_a_table_is_read(capture, seed, event):
    """Each run moves the cut; the large table is not there before its last chunk, and then equals the source."""
    dice, big, small = random.Random(seed), Lake("big"), Lake("small")
    cuts = []
    for number in range(1, 60):
        if number == 4 and event is not None:
            event(capture)
        change(capture, dice, number)
        drain(capture)
        merge_all(capture, big, small)
        cut = last_cut(capture.store, SOURCE)
        cuts.append(Point.at(cut.epoch, cut.position))
        prune_cursors(capture.store, capture.pipeline.cursors, SOURCE)
        if cursor(capture, LAKE).held == () and big.rows:
            break
        assert big.rows == {}
        assert small.rows == rows(capture, "small")
    assert 5 <= number < 59
    assert sorted(set(cuts)) == cuts
    drain(capture)
    merge_all(capture, big, small)
    assert big.rows == rows(capture, "big")
    assert small.rows == rows(capture, "small")
    assert cursor(capture, LAKE).held == ()
    why = {rewound: ["its snapshot was being read when an epoch ended"], requested_again: ["to be sure"]}
    assert [one.why for one in cursor(capture, DRAIN).quarantine] == why.get(event, [])


@pytest.mark.parametrize(("keys", "waits"), [(["schema"], True), (["table"], False)])
def test_all_tables_wait_for_one_that_cannot_be_read_again(mysql_server, mysql_database, tmp_path, keys, waits):
    """Its rows in the shared lake table do not show that they are its own, so that no later snapshot could replace them."""
    route = {"tables": f"{mysql_database}.*", "into": f"{mysql_database}.all", "keys": keys}
    capture = Capture(mysql_server, mysql_database, tmp_path, snapshot={"chunk_rows": 1}, routes=[route])
    for table in ("big", "small"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        capture.execute(f"INSERT INTO {table} VALUES (1, 0)")
    capture.execute("INSERT INTO big VALUES (2, 0), (3, 0)")
    drain(capture)
    capture.execute("UPDATE small SET v = 1")
    drain(capture)
    plan = capture.pipeline.plan_merge(by="test")
    assert [key for key in plan.batches if "/snapshots/" not in key] == [] or not waits
    assert bool(plan.held) is not waits
