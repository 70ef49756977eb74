"""What is missing between the cursors is an error that names it, and one command leads out."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from cdc_lib import requests
from cdc_lib.backfill.refill import BatchRefill
from cdc_lib.config.start import StartAt
from cdc_lib.consumers.rebuilt_cursors import Rebuilding
from cdc_lib.consumers.restore import restore
from cdc_lib.errors import BatchesMissing, ConfigError, CursorMissing, PositionPurged, SourceUnavailable
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.table_name import TableName
from cdc_lib.status.overview import findings_of, status_of
from cdc_lib.store import layout
from cdc_lib.store.windows import stored_windows
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.process import free_port


class World:
    """A source that was merged once and has three windows more, which wait for the lake."""

    def __init__(self, server, database, folder, **settings):
        self.capture = Capture(server, database, folder, **settings)
        self.capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        self.capture.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
        self.lake = Lake("t")
        self.pipeline = self.capture.pipeline
        self.settle()
        for number in range(3):
            self.capture.execute(f"INSERT INTO t VALUES ({10 + number}, {number})")
            self.capture.execute(f"UPDATE t SET v = {number} WHERE id = 1")
            drain_all(self.capture)

    def settle(self):
        for _ in range(4):
            drain_all(self.capture)
            self.lake.merge_all(self.capture)

    def windows(self):
        lake = self.cursor(LAKE)
        found = stored_windows(self.capture.store, SOURCE, lake.epoch)
        return [one for one in found if (one.start.file, one.start.offset) >= _position(lake.position)]

    def cursor(self, consumer):
        return self.pipeline.cursors.load(SOURCE, consumer)

    def refilling(self):
        capture = self.capture
        return BatchRefill(capture.pipeline)

    def lose(self, consumer):
        self.capture.store.delete([layout.cursor_key(SOURCE, consumer)])

    def lose_both(self):
        for consumer in (DRAIN, LAKE):
            self.lose(consumer)

    def purge(self):
        """Leave the server the newest file alone, in which the drain cursor is."""
        self.capture.execute("FLUSH BINARY LOGS")
        self.capture.execute("DELETE FROM t WHERE id = 2")
        drain_all(self.capture)
        deadline = time.monotonic() + 60
        while len(self.capture.execute("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < deadline
            self.capture.execute(f"PURGE BINARY LOGS TO '{self.capture.head().file}'")
            time.sleep(0.2)

    def errors(self):
        return [finding for finding in findings_of(self.pipeline) if finding.level == "error"]

    def assert_equal(self):
        rows = {id_: {"id": id_, "v": v} for id_, v in self.capture.execute("SELECT id, v FROM t")}
        assert self.lake.rows == rows


def _position(position):
    return position.file_number, position.offset


@pytest.fixture
def world(any_server, database, tmp_path):
    return World(any_server, database, tmp_path)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_manifest_that_is_deleted_after_its_ack_is_a_gap_that_is_named_and_refilled(world, which):
    """What lies before it is merged; then plan_merge says so, with the window's id, and the doctor and status repeat it."""
    window = world.windows()[which]
    world.capture.store.delete([window.key])
    if which:
        assert world.pipeline.plan_merge(by="test") is not None
    with pytest.raises(BatchesMissing, match=window.key.split("/")[-2]) as caught:
        world.lake.merge_all(world.capture)
    assert f"cdc batches refill {SOURCE}" in caught.value.hint
    assert [finding.what for finding in world.errors()] == [caught.value.message]
    assert caught.value.message in status_of(world.pipeline).missing[0].what
    refilled = []
    assert world.refilling().refill(report=refilled.append) == 1
    assert refilled[0].result.unit_id == window.key.split("/")[-2]
    world.settle()
    world.assert_equal()
    assert world.errors() == []
    assert world.refilling().missing() == []


def test_manifests_of_several_windows_and_a_part_come_back_together(world):
    """Two windows that follow each other are one gap; a file of the third is missing beside its manifest."""
    first, second, third = world.windows()
    world.capture.store.delete([first.key, second.key])
    manifest = world.capture.manifest(third.key)
    world.capture.store.delete([layout.beside(third.key, manifest.files[0].path)])
    found = world.refilling().missing()
    assert [bool(one.lost) for one in found] == [False, True]
    world.refilling().refill(report=lambda _: None)
    world.settle()
    world.assert_equal()


def test_a_missing_batch_of_the_merge_in_flight_is_refilled_with_the_same_window(world):
    """The plan stays as it is: its batches have the same ids."""
    plan = world.pipeline.plan_merge(by="test")
    key = world.windows()[1].key
    manifest = world.capture.manifest(key)
    world.capture.store.delete([layout.beside(key, manifest.files[0].path)])
    world.refilling().refill(report=lambda _: None)
    assert world.pipeline.plan_merge(by="test") == plan
    assert world.capture.manifest(key).files == manifest.files
    world.settle()
    world.assert_equal()


def test_what_the_server_no_longer_has_is_replaced_by_new_snapshots(world):
    """The refill says that the binlog is purged and changes nothing; going over is recorded in the lake cursor."""
    windows = world.windows()
    manifest = world.capture.manifest(windows[2].key)
    part = layout.beside(windows[2].key, manifest.files[0].path)
    world.capture.store.delete([windows[0].key, part])
    world.purge()
    with pytest.raises(PositionPurged, match="--over"):
        world.refilling().refill(report=lambda _: None)
    assert world.capture.manifest(windows[2].key) == manifest
    begun = world.cursor(LAKE).position
    move = world.refilling().go_over(by="test", why="purged")
    assert (move.kind, move.start, move.why) == ("gap", begun, "purged")
    assert world.cursor(LAKE).moves[-1] == move
    world.lake.rows.clear()  # what a snapshot does to the table; this lake does not know of it
    world.lake.order.clear()
    world.settle()
    world.assert_equal()
    assert world.errors() == []


@pytest.fixture
def archived(any_server, database, tmp_path):
    """A world with the raw events of each window."""
    return World(any_server, database, tmp_path, raw_archive=True)


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1, 2)])
def test_windows_that_the_server_purged_are_decoded_from_their_raw_events(archived, lost):
    """Each has its manifest, bounds and bytes again, and the lake ends equal."""
    keys = [archived.windows()[which].key for which in lost]
    before = [archived.capture.manifest(key) for key in keys]
    archived.capture.store.delete(keys)
    archived.purge()
    refilled = []
    assert archived.refilling().refill(report=refilled.append) == len(lost)
    assert [one.from_archive for one in refilled] == [True] * len(lost)
    assert [archived.capture.manifest(key) for key in keys] == before
    assert archived.refilling().missing() == []
    archived.settle()
    archived.assert_equal()
    assert archived.errors() == []


def test_a_lost_file_of_a_purged_window_is_decoded_from_the_raw_events(archived):
    """The manifest is there and names them; it stays as it was."""
    key = archived.windows()[1].key
    before = archived.capture.manifest(key)
    archived.capture.store.delete([layout.beside(key, before.files[0].path)])
    archived.purge()
    refilled = []
    archived.refilling().refill(report=refilled.append)
    assert [one.from_archive for one in refilled] == [True]
    assert archived.capture.manifest(key) == before
    archived.settle()
    archived.assert_equal()


def test_the_server_is_preferred_to_the_raw_events(archived):
    """It is asked for the windows as they were cut, although their manifests are lost."""
    keys = [one.key for one in archived.windows()]
    before = [archived.capture.manifest(key) for key in keys]
    archived.capture.store.delete(keys)
    refilled = []
    assert archived.refilling().refill(report=refilled.append) == len(keys)
    assert [one.from_archive for one in refilled] == [False] * len(keys)
    assert [archived.capture.manifest(key) for key in keys] == before


def test_raw_events_replace_a_server_that_cannot_be_reached(archived):
    """Without them the refill ends with the server's error, and says what to do if it is lost for good."""
    first, second, _ = archived.windows()
    archived.capture.store.delete([first.key])
    config = archived.capture.config
    down = config.model_copy(update={"server": config.server.model_copy(update={"port": free_port()})})
    refilling = BatchRefill(replace(archived.capture.pipeline, config=down))
    refilled = []
    assert refilling.refill(report=refilled.append) == 1
    assert refilled[0].from_archive
    _lose_with_archive(archived, second)
    with pytest.raises(SourceUnavailable, match="raw events of the window are not stored") as caught:
        refilling.refill(report=refilled.append)
    assert "--over" in caught.value.hint
    archived.refilling().refill(report=refilled.append)
    archived.settle()
    archived.assert_equal()


def test_windows_of_a_server_that_failed_over_are_decoded_from_their_raw_events(archived):
    """The drain cursor is on another server since: it does not have the positions of the epoch before."""
    keys = [one.key for one in archived.windows()]
    before = [archived.capture.manifest(key) for key in keys]
    drain = archived.cursor(DRAIN)
    other = replace(drain, identity=replace(drain.identity, server_uuid="another", server_id=99))
    archived.pipeline.cursors.swap(drain, other)
    archived.capture.store.delete(keys)
    refilled = []
    assert archived.refilling().refill(report=refilled.append) == len(keys)
    assert all(one.from_archive for one in refilled)
    assert [archived.capture.manifest(key) for key in keys] == before


def test_a_purged_window_whose_raw_events_are_lost_or_damaged_needs_new_snapshots(archived):
    """Windows before it are refilled; the message says what is wrong with its raw events."""
    first, second, third = archived.windows()
    archived.capture.store.delete([first.key, second.key])
    _lose_with_archive(archived, third)
    archived.purge()
    refilled = []
    with pytest.raises(PositionPurged, match=r"raw events of the window are not stored.*--over"):
        archived.refilling().refill(report=refilled.append)
    assert [one.result.unit_id for one in refilled] == [one.key.split("/")[-2] for one in (first, second)]
    archived.capture.store.delete([first.key])
    events = layout.beside(first.key, layout.raw_events_path())
    whole = archived.capture.store.get(events).data
    for damaged in (whole[:-3], whole[:-1] + bytes([whole[-1] ^ 1])):
        archived.capture.store.put(events, damaged)
        with pytest.raises(PositionPurged, match=r"the raw archive of a window cannot be read.*--over"):
            archived.refilling().refill(report=refilled.append)
    assert archived.capture.manifest(first.key) is None


def _lose_with_archive(world, window):
    folder = window.key.removesuffix(layout.MANIFEST)
    world.capture.store.delete([info.key for info in world.capture.store.list(folder)])


def test_a_lost_drain_cursor_is_an_error_and_is_made_again_from_the_lake(world):
    """A plan would have begun at the end of the binlog, and left out what lies between."""
    world.lose(DRAIN)
    world.capture.execute("INSERT INTO t VALUES (77, 7)")
    for step in (world.pipeline.plan, world.pipeline.plan_merge):
        with pytest.raises(CursorMissing, match="the drain cursor is missing"):
            step(by="test")
    assert world.cursor(DRAIN) is None
    assert "the drain cursor is missing" in world.errors()[0].what
    _rebuild(world)
    world.settle()
    world.assert_equal()
    assert world.errors() == []


def test_a_drain_cursor_lost_after_a_rewind_is_rebuilt_in_a_new_epoch(world):
    """Batches of the lost epoch are stored, and their order keys are not given twice."""
    start = str(world.cursor(LAKE).position)
    requests.rewind(world.pipeline, StartAt(position=start), by="test", why="to have two epochs")
    drain_all(world.capture)
    assert world.cursor(LAKE).epoch == 1
    world.lose(DRAIN)
    _rebuild(world)
    assert world.cursor(DRAIN).epoch == 3
    world.settle()
    world.assert_equal()
    assert world.cursor(LAKE).epoch == 3


def test_a_lost_lake_cursor_is_an_error_and_is_made_again_from_the_last_cut(world):
    """A plan would have begun with the oldest batch, which may not be the first that there was."""
    world.lose(LAKE)
    for step in (world.pipeline.plan, world.pipeline.plan_merge):
        with pytest.raises(CursorMissing, match="the lake cursor is missing"):
            step(by="test")
    _rebuild(world)
    world.settle()
    world.assert_equal()
    assert world.errors() == []


def test_batches_without_any_cursor_do_not_start_a_new_source(world):
    """Both were deleted: an export puts them back."""
    exported = [world.cursor(consumer) for consumer in (DRAIN, LAKE)]
    for consumer in (DRAIN, LAKE):
        world.lose(consumer)
    steps = [
        partial(getattr(world.pipeline, name), by="test") for name in ("plan", "ack_drain", "plan_merge", "ack_lake")
    ]
    for step in steps:
        with pytest.raises(
            CursorMissing, match="the drain cursor is missing, and so is the lake cursor, but batches"
        ) as caught:
            step()
    assert f"cdc cursor restore {SOURCE} --rebuild" in caught.value.hint
    assert "the drain cursor is missing" in world.errors()[0].what
    _restore(world, *exported)
    world.settle()
    world.assert_equal()


def test_both_lost_cursors_are_rebuilt_from_the_cut_and_the_batches(world):
    """The tables of the cut are not read again, and no window is drained twice, also where the server has purged it."""
    source_uuid = world.cursor(LAKE).source_uuid
    world.purge()
    exact = world.cursor(DRAIN)
    world.lose_both()
    _rebuild(world)
    drain, lake = world.cursor(DRAIN), world.cursor(LAKE)
    assert (drain.epoch, drain.position, drain.last_transaction) == (
        exact.epoch,
        exact.position,
        exact.last_transaction,
    )
    assert {drain.source_uuid, lake.source_uuid} == {source_uuid}
    assert (drain.open_snapshots, drain.tables_to_resnapshot) == ((), ())
    world.capture.execute("DELETE FROM t WHERE id = 10")
    world.settle()
    world.assert_equal()
    assert world.cursor(DRAIN).open_snapshots == ()
    assert world.errors() == []


def test_both_lost_cursors_of_a_source_that_was_never_merged_begin_at_its_oldest_batch(any_server, database, tmp_path):
    """Its tables are read again, as the lake has none of them."""
    world = World(any_server, database, tmp_path)
    world.capture.store.delete([info.key for info in world.capture.store.list(layout.cuts_prefix(SOURCE))])
    world.lake = Lake("t")
    world.lose_both()
    _rebuild(world)
    world.settle()
    world.assert_equal()


def test_both_cursors_lost_after_a_rewind_begin_with_new_snapshots(world):
    """A merge of the later epoch may have begun: what is drained again is in an epoch of its own."""
    requests.rewind(
        world.pipeline, StartAt(position=str(world.cursor(LAKE).position)), by="test", why="to have two epochs"
    )
    drain_all(world.capture)
    world.lose_both()
    _rebuild(world)
    drain = world.cursor(DRAIN)
    assert (drain.epoch, drain.tables_to_resnapshot) == (3, (TableName(world.capture.database, "t"),))
    world.settle()
    world.assert_equal()
    assert world.cursor(LAKE).epoch == 3


@pytest.mark.parametrize("lost", [(DRAIN,), (DRAIN, LAKE)])
def test_a_requested_snapshot_is_not_lost_with_the_cursors(world, lost):
    """The merge that waits for it has noted so in its cut."""
    requests.resnapshot(world.pipeline, [f"{world.capture.database}.t"], by="test", why="rows were wrong")
    assert world.lake.merge_all(world.capture)
    for consumer in lost:
        world.lose(consumer)
    _rebuild(world)
    assert world.cursor(DRAIN).tables_to_resnapshot == (TableName(world.capture.database, "t"),)
    world.settle()
    world.assert_equal()
    assert world.cursor(DRAIN).lagging_in(world.cursor(LAKE)) == ()


def test_cursors_that_cannot_be_rebuilt_are_refused(world):
    """None is lost; one is named and both are; nothing shows where the source was."""
    with pytest.raises(ConfigError, match="the drain or lake cursor is not lost"):
        _rebuild(world)
    world.lose_both()
    with pytest.raises(ConfigError, match="are both lost") as caught:
        _rebuild(world, DRAIN)
    assert f"cdc cursor restore {SOURCE} --rebuild" in caught.value.hint
    for prefix in (layout.cuts_prefix(SOURCE), layout.batches_prefix(SOURCE)):
        world.capture.store.delete([info.key for info in world.capture.store.list(prefix)])
    with pytest.raises(ConfigError, match="no cut and no window is stored"):
        _rebuild(world)


def _rebuild(world, consumer=None):
    _restore(world, *Rebuilding(world.pipeline, datetime.now(UTC), "test").rebuilt(consumer))


def _restore(world, *cursors):
    store, held = world.capture.store, world.pipeline.cursors
    restore(store, held, cursors, source=SOURCE, by="test", why="it was lost", at=datetime.now(UTC))
