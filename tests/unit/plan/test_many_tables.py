"""What a step does once, it does once: with many tables nothing is gone over again for each of them.

Operations are counted, not seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.cli.step.drain import drain_units
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.merge.held import next_merge
from cdc_lib.model.by_table import table_by_table
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.pipeline import Pipeline
from cdc_lib.plan.gaps import lost_chunks
from cdc_lib.quarantine.resnapshot import ResnapshotRequest, with_new_snapshot
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.steps.ack import over_durable
from cdc_lib.steps.plan import Planning
from cdc_lib.store import documents, layout
from cdc_lib.store.recent_cursors import RecentCursorStore
from tests.harness.lake.batches import IDENTITY, at

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 600
HEAD = Position("binlog.000001", 4)


def task(number, **state):
    """A snapshot of one of many tables."""
    return SnapshotTask("shop", 1, "000001-000001.000000000004", "db", f"t{number:05d}", **state)


def cursor(consumer=DRAIN, **state):
    """A cursor at the beginning."""
    return Cursor("shop", consumer, 0, 1, IDENTITY, HEAD, **state)


@pytest.fixture
def names(monkeypatch):
    """Count how often a task is asked for its id or name."""
    counted = Counter()

    def counting(name, real):
        def asked(self):
            counted[name] += 1
            return real(self)

        return property(asked)

    monkeypatch.setattr(SnapshotTask, "id", counting("id", SnapshotTask.id.fget))
    monkeypatch.setattr(SnapshotTask, "name", counting("name", SnapshotTask.name.fget))
    return counted


class CountingStore:
    """A store that counts its calls; everything else is the store's own."""

    def __init__(self, store):
        self._store = store
        self.calls = Counter()

    def __getattr__(self, name):
        call = getattr(self._store, name)

        def counted(*arguments, **more):
            self.calls[name] += 1
            return call(*arguments, **more)

        return counted


@pytest.fixture
def pipeline(tmp_path):
    """A pipeline over a real store whose calls are counted, with cursors that have many snapshots open."""
    config = SourceConfig.model_validate(
        {
            "source": "shop",
            "server": {"host": "nowhere", "user": "u", "password_env": "P"},
            "tables": {"include": ["db.*"]},
            "store": {"url": f"file://{tmp_path}/store"},
            "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/cat.db", "warehouse": f"file://{tmp_path}/lake"},
        }
    )
    opened = Pipeline.open(config, Credentials("u", ""))
    opened.cursors.swap(None, replace(cursor(), source=config.source))
    opened.cursors.swap(None, replace(cursor(LAKE), source=config.source))
    return replace(opened, store=CountingStore(opened.store))


def load(pipeline):
    """The drain cursor."""
    return pipeline.cursors.load(pipeline.config.source, DRAIN)


def manifest(source, one):
    """The only chunk of a snapshot."""
    chunk = SnapshotChunk(one.snapshot_id, one.name, 0, HEAD, None, None, last=True, high_watermark=HEAD)
    return Manifest(
        source=source, epoch=1, identity=IDENTITY, window=None, chunk=chunk, gtid_first="", gtid_last="",
        first_time=None, last_time=None, transactions=0, events=0, files=(), schemas={}, statements=(),
    )  # fmt: skip


def test_many_snapshots_are_put_into_a_cursor_in_one_pass(names):
    """4,000 tables took 7 CPU seconds, and each ack 18: every one of them sorted all others."""
    full = cursor().with_snapshots(map(task, range(MANY)))
    later = full.with_snapshots(task(number, chunks=1, complete=True) for number in range(MANY))
    assert names["id"] <= 4 * MANY
    assert len(later.snapshots) == MANY
    assert all(one.complete for one in later.snapshots)
    assert [one.table for one in later.snapshots] == sorted(one.table for one in later.snapshots)


def test_one_snapshot_after_the_other_gives_the_same_cursor():
    """In whichever order."""
    one_by_one = cursor()
    for number in reversed(range(20)):
        one_by_one = one_by_one.with_snapshot(task(number))
    assert one_by_one == cursor().with_snapshots(map(task, range(20)))


def test_a_plan_and_an_ack_of_many_tables_go_over_each_once(names, pipeline):
    """The store is listed once, and each new chunk is read once; an ack without new chunks reads none."""
    facts = ServerFacts(IDENTITY, (9, 7, 0), {}, HEAD, "", ((HEAD.file, 4),))
    tables = [("db", f"t{number:05d}") for number in range(MANY)]
    begun = load(pipeline)
    planned = pipeline.cursors.swap(begun, Planning(pipeline, "test")._enrolled(begun, facts, tables))
    assert names["id"] + names["name"] <= 8 * MANY
    assert Planning(pipeline, "test")._enrolled(planned, facts, tables) is planned
    for one in planned.snapshots[: MANY // 2]:
        pipeline.store.put(layout.chunk_manifest_key(one, 0), documents.dump(manifest(one.source, one)))
    pipeline.store.calls.clear()
    names.clear()
    pipeline.ack_drain(by="test")
    assert pipeline.store.calls == {"list": 1, "get": MANY // 2}
    assert names["id"] + names["name"] <= 12 * MANY
    moved = load(pipeline)
    assert sum(one.complete for one in moved.snapshots) == MANY // 2
    pipeline.store.calls.clear()
    assert over_durable(pipeline, moved, by="test") == moved
    assert pipeline.store.calls == {"list": 1}


def test_the_drain_of_many_snapshots_does_not_load_their_cursor_for_each(names, pipeline, monkeypatch):
    """Each of 5,000 snapshots parsed the cursor, which holds all 5,000, and asked each of these for its id."""
    begun = load(pipeline)
    tasks = [replace(task(number, chunks=1, complete=True), source=begun.source) for number in range(MANY)]
    pipeline.cursors.swap(begun, begun.with_snapshots(tasks))
    units = [replace(one, chunks=0, complete=False) for one in tasks]  # as planned; their batches were collected since
    monkeypatch.setattr("cdc_lib.cli.step.drain.open_pipeline", lambda _: replace(pipeline, cursors=counted))
    counted = CountingStore(pipeline.cursors)
    names.clear()
    drain_units(pipeline.config, units)
    assert counted.calls["load"] <= 3  # each counts for some seconds
    assert names["id"] + names["name"] <= 8 * MANY


def test_a_recent_cursor_is_loaded_again_when_it_is_old_or_moved(pipeline):
    """Here one after the other, of one process; what another moved is seen when it is old."""
    seconds = 0.0
    counted = CountingStore(pipeline.cursors)
    recent = RecentCursorStore(counted, 10.0, lambda: seconds)
    source = pipeline.config.source
    assert recent.load(source, "nobody") is None
    begun = recent.load(source, DRAIN)
    moved = pipeline.cursors.swap(begun, begun.with_snapshots([replace(task(1), source=source)]))
    seconds = 9.9
    assert recent.load(source, DRAIN) == begun
    seconds = 10.0
    assert recent.load(source, DRAIN) == moved
    again = recent.swap(moved, moved.with_snapshots([replace(task(2), source=source)]))
    assert recent.load(source, DRAIN) == again
    assert recent.consumers(source) == [DRAIN, LAKE]
    recent.remove(again)
    assert recent.load(source, DRAIN) is None
    assert counted.calls["load"] == 5


def test_a_merge_of_many_snapshots_reads_no_manifest_of_them_to_be_planned(pipeline):
    """Where no table is quarantined, nothing has to be known of their last chunks."""
    begun = load(pipeline)
    tasks = [replace(task(number, chunks=1, complete=True), source=begun.source) for number in range(MANY)]
    drain = pipeline.cursors.swap(begun, begun.with_snapshots(tasks))
    lake = pipeline.cursors.load(begun.source, LAKE)
    assert Quarantine(pipeline).held(drain, lake) == frozenset()
    assert pipeline.store.calls["get"] == 0


@pytest.mark.parametrize(("many", "calls"), [(MANY, {"list": 1, "get": 1}), (5, {"get": 5})])
def test_a_status_of_many_snapshots_lists_their_chunks_and_reads_none(pipeline, many, calls):
    """While 5,000 snapshots waited for a merge, each status and each doctor read 5,000 manifests. Few are read as before."""
    begun = load(pipeline)
    tasks = [replace(task(number, chunks=1, complete=True), source=begun.source) for number in range(many)]
    for one in tasks[1:]:
        pipeline.store.put(layout.chunk_manifest_key(one, 0), documents.dump(manifest(one.source, one)))
    lake = pipeline.cursors.load(begun.source, LAKE)
    pipeline.store.calls.clear()
    [lost] = lost_chunks(pipeline.store, begun.with_snapshots(tasks), lake)
    assert tasks[0].name in lost.message
    assert pipeline.store.calls == calls


def test_a_table_at_a_time_gives_what_one_after_the_other_gives():
    """Records keep their places, and new ones come last."""
    lake = cursor(LAKE)
    tasks = [task(number, chunks=number % 3, complete=number % 2 == 0) for number in range(12)]
    old = [
        QuarantineRecord(
            f"db.t{number:05d}", 1, at(4), at(4), at(4), None, None, NOW, released_position=at(8), released_epoch=1
        )
        for number in (3, 1, 3, 7)
    ]
    before = cursor(quarantine=tuple(old)).with_snapshots(tasks)
    tables = [f"db.t{number:05d}" for number in (1, 3, 9, 30)]

    def with_snapshot(alone, table):
        return with_new_snapshot(alone, table, lake, {}, ResnapshotRequest("test", NOW, "test"))

    expected = before
    for table in tables:
        expected = with_snapshot(expected, table)
    found = table_by_table(
        before, [(table, lambda alone, table=table: with_snapshot(alone, table)) for table in tables]
    )
    assert found == expected
    assert table_by_table(before, []) is before


def test_many_new_snapshots_are_recorded_in_one_pass(names, pipeline):
    """Each of them went over all snapshots of both cursors."""
    begun = load(pipeline)
    tasks = [replace(task(number, chunks=1, complete=True), source=begun.source) for number in range(MANY)]
    drain = begun.with_snapshots(tasks)
    lake = replace(pipeline.cursors.load(begun.source, LAKE).with_snapshots(tasks))
    names.clear()
    wanted = Quarantine(pipeline).with_new_snapshots(
        drain, lake, [one.name for one in tasks], ResnapshotRequest("test", NOW, "test")
    )
    assert len(wanted.tables_to_resnapshot) == MANY
    assert names["id"] + names["name"] <= 20 * MANY


class CountedRecord(QuarantineRecord):
    """A record that counts how often it is asked for its table."""

    asked = 0

    def __getattribute__(self, name):
        if name == "table":
            CountedRecord.asked += 1
        return super().__getattribute__(name)


def test_a_merge_looks_at_the_records_of_each_table_alone():
    """Each of many snapshots went over the records of all tables."""
    CountedRecord.asked = 0
    records = tuple(
        CountedRecord(f"db.t{number:05d}", 1, at(4), at(4), at(4), None, None, NOW, snapshot_id="s")
        for number in range(MANY)
    )
    tasks = [task(number, chunks=1, complete=True) for number in range(MANY)]
    found = next_merge(cursor(quarantine=records), cursor(LAKE), tasks, (), ())
    assert len(found.chunks) == MANY
    assert CountedRecord.asked <= 4 * MANY
