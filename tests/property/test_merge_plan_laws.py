"""The decisions of the merge, run on a table that is a dict: random histories must end as the source does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.merge.plan import Batch, Piece, has_arrived, replayed_windows, work_on
from cdc_lib.model.batch import DataFile, Manifest, SnapshotChunk
from cdc_lib.model.lake import Marker, Point, SnapshotMark
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.window import Window
from cdc_lib.store import layout
from tests.support.batches import BIGINT, IDENTITY, at, table
from tests.support.histories import STEP, histories

SCHEMA = table("db.t", {"id": BIGINT, "v": BIGINT})


def manifest(*, window=None, chunk=None, rows=1):
    files = (DataFile("part", SCHEMA.name, SCHEMA.id, rows, 1, "0"),) if rows else ()
    return Manifest(
        source="shop", epoch=1, identity=IDENTITY, window=window, chunk=chunk, gtid_first="", gtid_last="",
        first_time=None, last_time=None, transactions=0, events=0, files=files, schemas={SCHEMA.id: SCHEMA},
    )  # fmt: skip


class DictTable:
    """Does what a lake table does, by the same decisions."""

    def __init__(self, history):
        self.history = history
        self.rows = {}
        self.marker = Marker()
        self.changed = 0
        self.windows = []
        for start, stop, rows in history.windows:
            window = Window("shop", 1, at(start), at(stop))
            self.windows.append((Batch(layout.manifest_key(window), manifest(window=window, rows=len(rows))), rows))
        self.chunks = []
        for chunk in history.chunks:
            last = chunk.number == len(history.chunks) - 1
            facts = SnapshotChunk("s1", SCHEMA.name, chunk.number, at(chunk.low), None, None, None, last)
            self.chunks.append((Batch(f"chunk-{chunk.number}", manifest(chunk=facts, rows=len(chunk.rows))), chunk))
        self.done = []

    def step(self, step):
        if step.again is not None:
            step = self.history.steps[step.again]
            while step.again is not None:
                step = self.history.steps[step.again]
        batches = [self.chunks[i][0] for i in step.chunks] + [self.windows[i][0] for i in step.windows]
        stop = max((self.history.windows[i][1] for i in step.windows), default=STEP)
        plan = MergePlan("shop", 1, "m", at(4), at(stop), tuple(b.key for b in batches))
        work = work_on(SCHEMA.name, "mirror", batches, self.marker, plan)
        if not work.pieces:
            return
        self.apply(work)
        assert has_arrived(self.marker, work)

    def apply(self, work):
        pieces = list(work.pieces)
        if work.replay is not None:
            known = {batch.key: batch for batch, _ in self.windows}
            of = [batch.manifest.window for batch, _ in self.windows]
            stored = [(layout.manifest_key(w), Point.at(w.epoch, w.start), Point.at(w.epoch, w.stop)) for w in of]
            pieces += [Piece(known[k], work.replay[0]) for k in replayed_windows(stored, work.replay, SCHEMA.name)]
        last = {}
        for order, op, key, value in sorted(self.changes(pieces), key=lambda c: (c[0], c[1] != "d")):
            last[key] = (order, op, value)
        for key, (order, op, value) in last.items():
            if key in self.rows and self.rows[key][0] > order:
                assert work.guard, "a newer row, and nobody looks for one"
                continue
            self.rows.pop(key, None)
            if op != "d":
                self.rows[key] = (order, value)
        self.marker = work.marker
        self.changed += 1

    def changes(self, pieces):
        rows = {batch.key: rows for batch, rows in self.windows}
        chunks = {batch.key: chunk for batch, chunk in self.chunks}
        for piece in pieces:
            if piece.batch.key in chunks:
                chunk = chunks[piece.batch.key]
                yield from (((1, 1, chunk.low, -1), "r", key, value) for key, value in chunk.rows.items())
            for row in rows.get(piece.batch.key, ()):
                if piece.floor is None or (1, row.file, row.offset) >= piece.floor:
                    yield (1, row.file, row.offset, row.row), row.op, row.values["id"], row.values["v"]


@settings(max_examples=400, deadline=None)
@given(histories())
def test_any_split_of_any_history_ends_as_the_source_does(history):
    """Whatever the windows, the late chunks and the repeated merges are."""
    lake = DictTable(history)
    for step in history.steps:
        lake.step(step)
    assert {key: value for key, (_, value) in lake.rows.items()} == history.final


@settings(max_examples=200, deadline=None)
@given(histories())
def test_merging_everything_again_writes_nothing(history):
    """The marker counts every batch that the table holds."""
    lake = DictTable(history)
    for step in history.steps:
        lake.step(step)
    before = lake.changed
    for step in history.steps:
        lake.step(step)
    assert lake.changed == before


points = st.builds(Point, st.integers(1, 5), st.integers(1, 10**9), st.integers(4, 2**60))
marks = st.builds(SnapshotMark, st.text(min_size=1), st.integers(0, 9), st.booleans(), points, points)


@given(st.none() | points, st.lists(marks, unique_by=lambda m: m.snapshot_id, max_size=3))
def test_a_marker_reads_back_as_it_was_written(merged_to, snapshots):
    """It travels as text in a snapshot's summary."""
    marker = Marker(merged_to)
    for mark in snapshots:
        marker = marker.with_snapshot(mark)
    assert Marker.from_json(marker.to_json(), "db.t") == marker
