"""Documents of a source that runs for long do not grow: a thousand windows, with new snapshots of tables among them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.cursor import DRAIN, KEPT_MOVES, LAKE, Cursor
from cdc_lib.model.lake_table import KEPT_SNAPSHOTS, Marker, SnapshotMark
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Point
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.quarantine.records import resume
from cdc_lib.quarantine.resnapshot import ResnapshotRequest, with_new_snapshot
from cdc_lib.retention.garbage_collector import KEPT_CUTS, carry_out, plan_collection, prune_cursors
from cdc_lib.store import documents, layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import last_cut, publish
from tests.harness.lake.batches import IDENTITY, at
from tests.harness.store.stores import empty_store

WEEK = timedelta(days=7)
NOW = datetime.now(UTC)
TABLES = ("a", "b", "c")


class Source:
    """Both cursors of a source, moved as its acks move them."""

    def __init__(self, store):
        self.store, self.cursors = store, ObjectCursorStore(store)
        for name in (DRAIN, LAKE):
            self.cursors.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(4)))
        self.drain, self.lake = (self.cursors.load("shop", name) for name in (DRAIN, LAKE))

    def go(self, windows):
        """Drain and merge so many windows; every tenth comes with a new snapshot of a table, or of a part of it."""
        for _ in range(windows):
            start = self.drain.position
            window = Window("shop", 1, start, at(start.offset + 10))
            number = start.offset // 10
            if number % 10 == 0:
                self._read_again(number)
            self.drain = self.drain.with_windows((window,)).acked(window, at=NOW, event_time=NOW)
            self.lake = self.lake.with_windows((window,)).acked(window, at=NOW, event_time=NOW)
            for task in self.drain.open_snapshots:
                self.drain = self.drain.with_snapshot(replace(task, chunks=1, complete=True))
                self.lake = self.lake.with_snapshot(replace(task, chunks=1, complete=True))
            self.lake = replace(self.lake, quarantine=self.drain.quarantine)
        for name, moved in ((DRAIN, self.drain), (LAKE, self.lake)):
            self.cursors.swap(self.cursors.load("shop", name), moved)

    def _read_again(self, number):
        table = TABLES[number % len(TABLES)]
        task = SnapshotTask("shop", 1, f"{number:06d}", "shop", table)
        if number % 20:
            self.drain = self.drain.with_snapshot(replace(task, selection=RowSelection(("id",), ("1",), ("9",))))
            return
        name = f"shop.{table}"
        wanted = with_new_snapshot(self.drain, name, self.lake, {}, ResnapshotRequest("", NOW, ""))
        self.drain = resume(wanted, name, self.drain.position, task, at=NOW, by="")

    def collect(self):
        """Do what the collection does a week later."""
        later = datetime.now(UTC) + WEEK + timedelta(hours=1)
        carry_out(self.store, plan_collection(self.store, self.cursors, "shop", WEEK, later))
        prune_cursors(self.store, self.cursors, "shop")
        self.drain, self.lake = (self.cursors.load("shop", name) for name in (DRAIN, LAKE))
        return [len(documents.dump(one)) for one in (self.drain, self.lake)]


@pytest.fixture
def source(request, tmp_path):
    return Source(empty_store("local", request, tmp_path))


def test_cursors_stay_as_long_as_they_are(source):
    """A hundred moves, and of each table its last record and snapshot, however many windows there were."""
    sizes = []
    for _ in range(10):
        source.go(100)
        assert len(source.drain.quarantine) > len(TABLES)
        sizes.append(source.collect())
    for first, last in zip(sizes[1], sizes[-1], strict=True):
        assert last < first + 1000  # longer numbers
    assert len(source.drain.moves) == len(source.lake.moves) == KEPT_MOVES
    assert len(source.drain.quarantine) == len(source.drain.snapshots) == len(source.lake.snapshots) == len(TABLES)
    assert source.drain.tables_to_resnapshot == source.drain.open_snapshots == ()


def test_old_cuts_go_but_for_the_last(source):
    """A cut that is young stays, and so does the one that the lake shows."""
    for number in range(KEPT_CUTS + 30):
        publish(source.store, Cut("shop", f"000001-{number:06d}-x", 1, at(number + 4), None, NOW, ()))
    assert not plan_collection(source.store, source.cursors, "shop", WEEK, NOW + timedelta(days=6)).removals
    assert not plan_collection(source.store, source.cursors, "shop", WEEK, NOW + WEEK * 2, WEEK * 3).removals
    source.collect()
    assert len(list(source.store.list(layout.cuts_prefix("shop")))) == KEPT_CUTS
    assert last_cut(source.store, "shop").position == at(KEPT_CUTS + 33)


def test_a_marker_remembers_the_last_snapshots():
    """Chunks of those begun before them are not taken any more."""
    marker = Marker(Point(1, 1, 4))
    for number in range(200):
        point = Point(1, 1, 10 + number)
        marker = marker.with_snapshot(SnapshotMark(f"{number:06d}", 1, True, point, point, point))
    assert [one.snapshot_id for one in marker.snapshots] == [f"{n:06d}" for n in range(200 - KEPT_SNAPSHOTS, 200)]
    assert marker.top == Point(1, 1, 209)
