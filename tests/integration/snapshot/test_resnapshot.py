"""A new snapshot of a captured table while the binlog is followed: what it asks for, what it cancels, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.consumers import Interest, subscribe_to
from cdc_lib.errors import ConfigError, UnsupportedValue
from cdc_lib.merge.held import next_merge
from cdc_lib.model.cursor import LAKE
from cdc_lib.model.window import SnapshotTask
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.status.overview import findings_of, status_of
from cdc_lib.store import layout
from tests.harness.binlog.capture import SOURCE, Capture, first_chunk, row_metadata
from tests.harness.lake.merging import Lake, merge_all
from tests.harness.shop.quarantine import BAD_TEXT, capturing, change, cursor, rounds


@pytest.fixture
def capture(any_server, database, tmp_path):
    return capturing(any_server, database, tmp_path)


def resnapshot(capture, *tables):
    names = [f"{capture.database}.{table}" for table in tables]
    return requests.resnapshot(capture.pipeline, names, by="somebody", why="to be sure")


def test_a_table_is_snapshotted_after_the_windows_in_flight_and_not_merged_before(capture):
    """The record has no fault, and says who wanted it and why; other tables are merged as ever."""
    change(capture)
    (window,) = capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO good VALUES (4, 'later')")
    (record,) = resnapshot(capture, "good")
    assert (record.fault, record.why, record.by, record.is_open) == (None, "to be sure", "somebody", False)
    lake = capture.pipeline.cursors.load(SOURCE, LAKE)
    assert (record.start, record.released_position) == (lake.position, capture.head())
    assert cursor(capture).in_flight == (window,)
    assert cursor(capture).skipped_tables(window) == ()
    rounds(capture, 2)
    plan = capture.pipeline.plan_merge(by="test")
    (task,) = cursor(capture).snapshots
    assert plan.batches[0] == layout.chunk_manifest_key(task, 0)
    assert plan.quarantine == (record,)
    assert plan.lagging == ()
    manifest = capture.manifest(layout.manifest_key(window))
    assert capture.ops(manifest, "good") == [("c", 1), ("c", 3)]
    assert manifest.quarantined == ()


def test_several_tables_are_asked_for_at_once(capture):
    """By their names or by a pattern; they share a place."""
    first, second = resnapshot(capture, "b*", "good", "?ad")
    assert (first.table, second.table) == (f"{capture.database}.bad", f"{capture.database}.good")
    assert first.released_position == second.released_position
    assert {task.table for task in cursor(capture).open_snapshots} == {"bad", "good"}


def test_a_snapshot_that_is_asked_for_again_is_taken_from_then_on(capture):
    """The one before is cancelled: neither read on nor merged; batches do not stay for it."""
    capture.execute("INSERT INTO good VALUES (1, 'before')")
    (first,) = resnapshot(capture, "good")
    (old,) = capture.pipeline.plan(by="test")[:1]
    capture.pipeline.drain(old)
    capture.execute("DELETE FROM good")
    (wanted,) = requests.preview_resnapshot(capture.pipeline, [f"{capture.database}.good"])
    assert (wanted.keyed, wanted.reading) == (True, True)
    (second,) = resnapshot(capture, "good")
    assert second.snapshot_id > first.snapshot_id
    assert [task.snapshot_id for task in cursor(capture).open_snapshots] == [second.snapshot_id]
    assert capture.pipeline.drain(old).batches == 0
    rounds(capture, 2)
    plan = capture.pipeline.plan_merge(by="test")
    chunks = [key for key in plan.batches if "/snapshots/" in key]
    assert [second.snapshot_id in key for key in chunks] == [True]


def test_a_merge_in_flight_is_replanned_without_the_table(capture):
    """The move tells who and why; a plan whose cut is there stays, because it is done."""
    change(capture)
    rounds(capture)
    before = capture.pipeline.plan_merge(by="test")
    resnapshot(capture, "good")
    after = capture.pipeline.plan_merge(by="the next merge")
    assert (after.batches, after.lagging[0].table) == (before.batches, f"{capture.database}.good")
    assert after.merge_id != before.merge_id
    lake = capture.pipeline.cursors.load(SOURCE, LAKE)
    move = lake.moves[-1]
    assert (move.kind, move.start, move.stop) == ("rollback", before.start, before.start)
    assert (move.by, f"{capture.database}.good" in move.why) == ("the next merge", True)
    rounds(capture, 2)
    merge_all(capture, good := Lake("good"))
    assert sorted(good.rows) == [key for (key,) in capture.execute("SELECT id FROM good ORDER BY id")] != []


def test_a_new_snapshot_leads_out_of_a_window_that_its_table_stops(any_server, database, tmp_path):
    """Its rows there are not needed any more; what another table is at fault for stops the window as before."""
    capture = capturing(any_server, database, tmp_path, on_error="stop")
    change(capture, BAD_TEXT)
    (window,) = capture.pipeline.plan(by="test")
    resnapshot(capture, "good")
    with pytest.raises(UnsupportedValue):
        capture.pipeline.drain(window)
    capture.execute("DELETE FROM bad WHERE id = 2")
    resnapshot(capture, "bad")
    (record,) = capture.pipeline.drain(window).quarantined
    assert (record.table, record.fault.code) == (f"{capture.database}.bad", "unsupported_value")
    manifest = capture.manifest(layout.manifest_key(window))
    assert (capture.ops(manifest, "bad"), capture.ops(manifest, "good")) == ([], [("c", 1), ("c", 3)])
    assert rounds(capture, 3).quarantined == ()
    assert cursor(capture).quarantined_tables == ()
    assert {task.table for task in cursor(capture).snapshots if task.chunks} == {"bad", "good"}
    assert capture.pipeline.plan_merge(by="test").lagging == ()


@pytest.mark.parametrize("metadata", ["MINIMAL", "NO_LOG"])
def test_columns_that_the_binlog_does_not_name_are_read_again_as_well(any_server, database, tmp_path, metadata):
    """Where the new snapshot is asked for; windows before it go by what was known."""
    with row_metadata(any_server, metadata):
        capture = capturing(any_server, database, tmp_path)
        change(capture)
        rounds(capture)
        capture.execute("INSERT INTO good VALUES (4, 'before')")
        capture.pipeline.plan(by="test")
        capture.execute("ALTER TABLE good ADD COLUMN n INT FIRST")
        capture.execute("INSERT INTO good VALUES (1, 5, 'between')")
        resnapshot(capture, "good")
        capture.execute("ALTER TABLE good DROP COLUMN v")
        capture.execute("INSERT INTO good VALUES (2, 6)")
        assert rounds(capture, 4).waiting == 0
        newest = status_of(capture.pipeline).last_batches[-1]
        assert [(row["n"], row["id"]) for row in capture.rows(newest, "good")] == [(2, 6)]


def test_names_that_are_not_captured_are_reported_with_those_that_are(capture):
    """All of them at once."""
    names = [f"{capture.database}.god", f"{capture.database}.good", "elsewhere.good"]
    with pytest.raises(ConfigError, match=rf"not captured: {capture.database}\.god, elsewhere\.good") as caught:
        requests.resnapshot(capture.pipeline, names, by="test", why="")
    assert f"{capture.database}.bad, {capture.database}.good" in caught.value.hint
    with pytest.raises(ConfigError, match=r"nothing\.\*, good \('good' is not database\.table\)"):
        requests.resnapshot(capture.pipeline, ["nothing.*", "good"], by="test", why="")


def test_shards_whose_rows_cannot_be_distinguished_are_refused(any_server, database, tmp_path):
    """A snapshot of one would take the rows of the others out of the table that they share."""
    route = {"tables": f"{database}.*", "into": f"{database}.all", "keys": ["schema"]}
    capture = Capture(any_server, database, tmp_path, start="latest", routes=[route])
    for table in ("one", "two"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    capture.pipeline.plan(by="test")
    with pytest.raises(ConfigError, match=rf"cannot be distinguished from those of {database}\.two"):
        resnapshot(capture, "one")
    with_keys = Capture(any_server, database, tmp_path, start="latest", routes=[{**route, "keys": ["table"]}])
    assert resnapshot(with_keys, "one")


def test_the_next_plan_requests_a_wanted_snapshot_that_has_no_position(capture):
    """Who records that a table was replaced need not speak to the server; a table that is gone has its record closed."""
    change(capture)
    rounds(capture)
    pipeline, before = capture.pipeline, cursor(capture)
    lake = pipeline.cursors.load(SOURCE, LAKE)
    wanted = before
    for table in ("good", "gone"):
        name = f"{capture.database}.{table}"
        wanted = Quarantine(pipeline).with_new_snapshots(
            wanted, lake, [name], ResnapshotRequest("it was replaced", before.moves[-1].at, "test", before.position)
        )
    assert wanted.tables_to_resnapshot == (f"{capture.database}.good", f"{capture.database}.gone")
    pipeline.cursors.swap(before, wanted)
    (task,) = pipeline.plan(by="the plan")
    assert task.table == "good"
    good, gone = cursor(capture).quarantine
    assert (good.start, good.released_position, good.released_by) == (before.position, capture.head(), "the plan")
    assert (gone.is_open, gone.snapshot_id) == (False, "")
    assert cursor(capture).tables_to_resnapshot == ()


def test_status_and_doctor_distinguish_a_new_snapshot_from_a_fault(capture):
    """Until it is in the lake, status lists it; the doctor finds nothing wrong."""
    (record,) = resnapshot(capture, "good")
    (one,) = status_of(capture.pipeline).lagging
    assert (one.table, one.last) == (f"{capture.database}.good", record)
    assert [found for found in findings_of(capture.pipeline) if "good" in found.what] == []
    assert cursor(capture).quarantined_tables == ()


def test_consumers_of_the_batches_get_every_change_of_a_resnapshotted_table(capture):
    """No snapshot brings it to them."""
    with subscribe_to(capture.config, "audit", Interest()) as subscription:
        change(capture)
        rounds(capture)
        resnapshot(capture, "good")
        rounds(capture, 2)
        batch = subscription.get(batch_size=100, timeout=5)
        assert batch.tables()[f"{capture.database}.good"].num_rows == 2
        batch.ack()


def test_a_table_whose_columns_are_renamed_between_two_chunks_is_resnapshotted(any_server, database, tmp_path):
    """Half of its rows have the names of before: from the window of the rename on nothing of it counts."""
    capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 2}, start="latest")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
    rounds(capture)
    resnapshot(capture, "t")
    (task,) = [unit for unit in capture.pipeline.plan(by="test") if isinstance(unit, SnapshotTask)]
    first_chunk(capture.reader, task, cursor(capture).identity)  # the first half
    swap = capture.head()
    capture.execute("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    rounds(capture, 2)
    record = cursor(capture).quarantine_record(f"{capture.database}.t")
    assert record.why == "its columns were renamed while it was read"
    old, new = cursor(capture).snapshots
    assert (old.cancelled, new.complete) == (True, True)
    # A rename before a whole snapshot, or after it, leaves it as it is.
    rounds(capture)
    capture.execute("ALTER TABLE t RENAME COLUMN a TO c")
    rounds(capture)
    assert cursor(capture).quarantine_record(f"{capture.database}.t") == record
    assert cursor(capture).snapshots == (old, new)
    plan = capture.pipeline.plan_merge(by="test")
    assert swap < record.released_position
    # What came before the snapshot is merged first; what comes later waits for it.
    assert [key for key in plan.batches if "/snapshots/" in key] == []
    assert [(one.table, one.position) for one in plan.held] == [(record.table, record.released_position)]
    lake = capture.pipeline.cursors.load(capture.config.source, LAKE)
    found = next_merge(cursor(capture), replace(lake, position=plan.stop, in_flight=()), [new], (), ())
    assert (found.chunks, found.held, found.catching_up) == ((new,), (), plan.held)
