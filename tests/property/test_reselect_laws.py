"""Rows that are read back from the source while windows lag: once the marker has passed the reads, the table is right.

The merge's own decisions (what is due, whether older rows are guarded against, how far rows are ahead) run on a table that is
a dict. Where a row is read back, the low watermark lies at or after the merge's end, the row is that of a moment at or after the
watermark, and the high watermark at or after that moment: all three are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_lib.merge.plan import StoredBatch, has_arrived, work_on
from cdc_lib.model.lake_table import Marker, Reselected
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.model.window import Window
from cdc_lib.store import layout
from tests.harness.generated.examples import examples
from tests.harness.lake.batches import BIGINT, IDENTITY, at, table

SCHEMA = table("db.t", {"id": BIGINT, "v": BIGINT})
STEP, KEYS = 10, 4


@dataclass(frozen=True)
class Read:
    """A look-up: the log's offsets before, at and after the SELECT."""

    low: int
    seen: int
    high: int


@dataclass(frozen=True)
class Life:
    """Changes ``(offset, op, key, value)``, the states before each offset, where windows end, and what merges read back."""

    changes: tuple[tuple[int, str, int, int], ...]
    states: tuple[dict[int, int], ...]
    bounds: tuple[int, ...]
    reads: tuple[Read | None, ...]
    again: tuple[bool, ...]


@st.composite
def lives(draw):
    """A table's life, cut into windows, some of which are merged with rows that are read back."""
    state, changes, states = {}, [], [{}]
    for number in range(1, draw(st.integers(1, 20)) + 1):
        key = draw(st.integers(0, KEYS - 1))
        op = "c" if key not in state else draw(st.sampled_from("uud"))
        if op == "d":
            state.pop(key)
        else:
            state[key] = number
        changes.append((number * STEP, op, key, number))
        states.append(dict(state))
    end = (len(changes) + 1) * STEP
    bounds = sorted({STEP, end, *draw(st.lists(st.sampled_from(range(STEP, end + 1, STEP)), max_size=6))})
    reads, again = [], []
    for _, stop in pairwise(bounds):
        if draw(st.booleans()):
            low = draw(st.sampled_from(range(stop, end + 1, STEP)))
            seen = draw(st.sampled_from(range(low, end + 1, STEP)))
            reads.append(Read(low, seen, draw(st.sampled_from(range(seen, end + 1, STEP)))))
        else:
            reads.append(None)
        again.append(draw(st.booleans()))
    return Life(tuple(changes), tuple(states), tuple(bounds), tuple(reads), tuple(again))


def point(offset):
    return Point(1, 1, offset)


class Table:
    """Rows by key with their order, merged as the lake's are."""

    def __init__(self, life):
        self.life = life
        self.rows = {}
        self.marker = Marker()
        self.commits = 0

    def state_at(self, offset):
        return self.life.states[offset // STEP - 1]

    def merge(self, start, stop, read, keys):
        """Merge one window; rows of the keys are read back."""
        window = Window("shop", 1, at(start), at(stop))
        mine = [change for change in self.life.changes if start <= change[0] < stop]
        files = (DataFile("part", SCHEMA.name, SCHEMA.id, len(mine), 1, "0"),) if mine else ()
        manifest = Manifest("shop", 1, IDENTITY, window, None, "", "", None, None, 0, 0, files, {SCHEMA.id: SCHEMA})
        batch = StoredBatch(layout.manifest_key(window), manifest)
        plan = MergePlan("shop", 1, "m", at(start), at(stop), (batch.key,))
        work = work_on(SCHEMA.name, "mirror", [batch], self.marker, plan)
        if not work.inputs:
            return
        last = {key: ((1, 1, offset, 0), op, value) for offset, op, key, value in mine}
        marker = work.marker
        wanted = [key for key, (_, op, _) in last.items() if op != "d" and key in keys] if read else []
        for key in wanted:
            there = self.state_at(read.seen)
            last[key] = ((1, 1, read.low, SNAPSHOT_ROW), "r" if key in there else "d", there.get(key))
        if wanted:
            marker = marker.with_reselected(Reselected(point(read.low), point(read.high)))
        for key, (order, op, value) in last.items():
            if key in self.rows and self.rows[key][0] > order:
                assert work.guard, "a newer row, without the guard"
                continue
            self.rows.pop(key, None)
            if op != "d":
                self.rows[key] = (order, value)
        self.marker = marker
        self.commits += 1
        assert has_arrived(self.marker, work)

    @property
    def shown(self):
        return {key: value for key, (_, value) in self.rows.items()}


@settings(max_examples=examples(600), deadline=None)
@given(lives(), st.sets(st.integers(0, KEYS - 1)))
def test_a_table_equals_the_source_whenever_no_row_is_ahead(life, keys):
    """At each marker after the reads it equals the source's state there; before that, no row is older than the marker."""
    lake = Table(life)
    for (start, stop), read, again in zip(pairwise(life.bounds), life.reads, life.again, strict=True):
        lake.merge(start, stop, read, keys)
        commits = lake.commits
        if again:
            lake.merge(start, stop, read, keys)
        assert lake.commits == commits
        if lake.marker.reselected is None:
            # Windows without changes of the table leave its marker after, and the table as it was.
            assert lake.shown == lake.state_at(stop)
        else:
            event("rows are ahead")
            untouched = set(range(KEYS)) - keys
            here = lake.state_at(stop)
            assert {k: lake.shown.get(k) for k in untouched} == {k: here.get(k) for k in untouched}


@settings(max_examples=examples(300), deadline=None)
@given(lives())
def test_older_windows_do_not_overwrite_a_reselected_row(life):
    """In any order of merges."""
    lake, newest = Table(life), {}
    for (start, stop), read in zip(pairwise(life.bounds), life.reads, strict=True):
        lake.merge(start, stop, read, set(range(KEYS)))
        for key, (order, _) in lake.rows.items():
            assert order >= newest.get(key, order)
        # An older change may insert a deleted key again, until its delete is merged.
        newest = {key: order for key, (order, _) in lake.rows.items()}


points = st.builds(Point, st.integers(1, 5), st.integers(1, 10**9), st.integers(4, 2**60))


@given(st.none() | points, points, points)
def test_a_marker_with_reselected_rows_round_trips_as_json(merged_to, low, high):
    """And without them once the merges have reached the high watermark."""
    marker = Marker(merged_to).with_reselected(Reselected(low, high))
    assert Marker.from_json(marker.to_json(), "db.t") == marker
    ahead = merged_to is None or high > merged_to
    assert ("reselected" in marker.to_json()) == ahead
    assert "reselected" not in marker.with_merged_to(high).to_json()
