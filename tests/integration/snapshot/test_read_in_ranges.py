"""A table that is read in ranges, in any order and beside writes, by tasks that die: it comes out as if it was read by one task."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import BatchNotDurable, StoreUnavailable
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.position import Point
from cdc_lib.retention.garbage_collector import _watermark, prune_cursors
from cdc_lib.retention.policy import snapshot_floor
from cdc_lib.snapshot import chunk_reader
from cdc_lib.store.manifests import chunks_of, first_chunks_of
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, merge_all

OVER = datetime(2000, 1, 1, tzinfo=UTC)
"""A time at which reading ends: each task reads one chunk."""

KEYS = [f"{letter}{number:02d}" for letter in "aBcDe" for number in range(8)]
"""In the order of the column's collation, which is not that of the bytes."""


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 4, "range_bytes": 1, "max_ranges": 4})
    capture.execute("CREATE TABLE big (id VARCHAR(9) PRIMARY KEY, v INT) CHARACTER SET utf8mb4")
    capture.begin = capture.head()
    values = ", ".join(f"('{key}', 0)" for key in KEYS)
    capture.execute(f"INSERT INTO big VALUES {values}")
    capture.execute("ANALYZE TABLE big")
    return capture


def rows(capture):
    names = [name for (name, *_) in capture.execute("SHOW COLUMNS FROM big")]
    return {row[0]: dict(zip(names, row, strict=True)) for row in capture.execute("SELECT * FROM big")}


def cursor(capture, consumer=DRAIN):
    return capture.pipeline.cursors.load(SOURCE, consumer)


def change(capture, dice, number):
    """Insert, update, delete rows, also beyond all keys, and move them between ranges."""
    for _ in range(dice.randrange(6)):
        key, other = (dice.choice([*KEYS, "0", "zz", f"b{number}"]) for _ in range(2))
        statement = dice.choice(
            (
                f"REPLACE INTO big (id, v) VALUES ('{key}', {number})",
                f"DELETE FROM big WHERE id = '{key}'",
                f"UPDATE big SET v = {number} WHERE id = '{key}'",
                f"UPDATE IGNORE big SET id = '{other}' WHERE id = '{key}'",
            )
        )
        capture.execute(statement)


class Dying:
    """Publishes manifests of chunks; some tasks die before."""

    def __init__(self, dice):
        self.dice = dice
        self.publish = chunk_reader.publish_manifest

    def __call__(self, store, key, manifest):
        if self.dice.random() < 0.3:
            raise StoreUnavailable("killed")
        return self.publish(store, key, manifest)


def drain(capture, dice, number=0):
    """Read some ranges, in any order, with changes in between; others have to wait for the next run."""
    units = capture.pipeline.plan(by="test")
    for unit in dice.sample(units, len(units)):
        change(capture, dice, number) if number else None
        if number and dice.random() < 0.2:
            continue
        try:
            capture.pipeline.drain(unit, until=OVER)
        except StoreUnavailable:
            continue
    with suppress(BatchNotDurable):
        capture.pipeline.ack_drain(by="test")


def rewound(capture):
    requests.rewind(capture.pipeline, StartAt(position=str(capture.begin)), by="test", why="to look again")


def requested_again(capture):
    requests.resnapshot(capture.pipeline, [f"{capture.database}.big"], by="test", why="to be sure")


def renamed(capture):
    capture.execute("ALTER TABLE big CHANGE v w INT")
    capture.execute("ALTER TABLE big ADD COLUMN v INT DEFAULT 8")


def reordered(capture):
    """Give the keys the order of their bytes: the ranges are none of these."""
    capture.execute("ALTER TABLE big MODIFY id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")


ON_EACH = {"mysql": [None, None, rewound, requested_again], "mariadb": [None, renamed, reordered]}
CASES = [(server, seed, event) for server, events in ON_EACH.items() for seed, event in enumerate(events)]


@pytest.mark.parametrize(("any_server", "seed", "event"), CASES, indirect=["any_server"])
def test_the_lake_equals_the_source(capture, monkeypatch, seed, event):
    """It has nothing of the table before the last range is complete, and all of it afterwards."""
    dice, big = random.Random(seed), Lake("big")
    monkeypatch.setattr(chunk_reader, "publish_manifest", Dying(dice))
    ranges = set()
    for number in range(1, 60):
        if number == 4 and event is not None:
            event(capture)
        drain(capture, dice, number)
        ranges |= {len(task.ranges) for task in cursor(capture).snapshots}
        merge_all(capture, big)
        prune_cursors(capture.store, capture.pipeline.cursors, SOURCE)
        if big.rows:
            break
    assert 4 < number < 59
    assert max(ranges) == 4
    monkeypatch.undo()
    for _ in range(3):
        drain(capture, dice)
        merge_all(capture, big)
    assert big.rows == rows(capture)
    assert cursor(capture, LAKE).held == ()
    assert cursor(capture).open_snapshots == ()


def test_a_range_that_is_read_again_writes_the_same_chunks(capture):
    """Each range has its own names, and goes on after its own last chunk; what is stored is not read again."""
    units = capture.pipeline.plan(by="test")[:4]
    assert [unit.range_number for unit in units] == [0, 1, 2, 3]
    for unit in (units[2], units[0], units[2]):
        capture.pipeline.drain(unit, until=OVER)
    assert [[one.chunk.number for one in chunks_of(capture.store, unit)] for unit in units] == [[0], [], [0, 1], []]
    capture.pipeline.ack_drain(by="test")
    again = capture.pipeline.plan(by="test")[:4]
    assert [unit.id for unit in again] == [unit.id for unit in units]
    bounds = [[(one.after, one.last) for one in unit.ranges] for unit in (units[0], again[0])]
    assert bounds[0] == bounds[1]
    assert [one.chunks for one in again[0].ranges] == [1, 0, 2, 0]
    before = [one.id for one in chunks_of(capture.store, units[2])]
    for unit in units:
        capture.pipeline.drain(unit)
        capture.pipeline.drain(unit)
    assert [one.id for one in chunks_of(capture.store, units[2])][:2] == before
    (task,) = cursor(capture).open_snapshots
    read = [row["id"] for one in capture.chunks(task) for row in capture.rows(one, "big")]
    assert sorted(read) == sorted(KEYS)


def test_a_range_with_an_invalid_row_quarantines_the_table(any_server, database, tmp_path):
    """As one task would: the other ranges are not read any more."""
    settings = {"chunk_rows": 4, "range_bytes": 1, "max_ranges": 3}
    capture = Capture(any_server, database, tmp_path, snapshot=settings, on_error="quarantine")
    capture.execute("CREATE TABLE bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
    capture.execute(f"INSERT INTO bad VALUES {', '.join(f'({key}, {key})' for key in range(30))}")
    capture.execute("UPDATE bad SET v = _cp1250 X'81' WHERE id = 14")
    capture.execute("ANALYZE TABLE bad")
    first, second, third = capture.pipeline.plan(by="test")[:3]
    capture.pipeline.drain(first, until=OVER)
    assert [one.table for one in capture.pipeline.drain(second).quarantined] == [f"{database}.bad"]
    capture.pipeline.ack_drain(by="test")
    (record,) = cursor(capture).quarantined_tables
    assert record.fault.code == "unsupported_value"
    assert cursor(capture).open_snapshots == ()
    assert [capture.pipeline.drain(unit).batches for unit in (first, third)] == [0, 0]


def test_windows_are_kept_for_a_range_that_nobody_has_begun_to_read(capture):
    """Its watermark is not known; it lies after the request."""
    units = capture.pipeline.plan(by="test")[:4]
    capture.execute("UPDATE big SET v = 1")
    capture.pipeline.drain(units[1])
    capture.pipeline.ack_drain(by="test")
    (task,) = cursor(capture).open_snapshots
    manifest = first_chunks_of(capture.store, task)[0]
    requested, low = task.requested_at, Point.at(1, manifest.chunk.low_watermark)
    assert requested < low
    assert snapshot_floor([cursor(capture), cursor(capture, LAKE)], _watermark(capture.store)) == requested
