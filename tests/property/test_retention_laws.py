"""Whatever was read by whom and however old it is: what somebody still needs stays, and the rest goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.consumers.backlog import earliest, following
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.model.xa import Decision, Prepared
from cdc_lib.model.xa_settlement import opened_before, settle
from cdc_lib.retention.policy import RetentionFacts, ended_snapshots, judge_windows, laggards
from cdc_lib.retention.pruning import pruned_drain
from cdc_lib.store import layout
from tests.harness.lake.batches import IDENTITY, START_TIME, at

STEP = 100
OLD, YOUNG = START_TIME, START_TIME + timedelta(days=9)
LIMIT = START_TIME + timedelta(days=2)


@dataclass(frozen=True)
class Stream:
    windows: list[StoredWindow]
    manifests: dict[str, Manifest]
    cursors: list[Cursor]

    def facts(self, **other) -> RetentionFacts:
        given = {"watermark": lambda *_: None, "older_than": LIMIT, **other}
        return RetentionFacts(self.windows, self.manifests, self.cursors, **given)


@st.composite
def streams(draw) -> Stream:
    """Transactions over a stream that is cut once or twice, consumers anywhere in it, windows old and young."""
    length = draw(st.integers(2, 14))
    events, opened = [], {}
    for number in range(1, length):
        xid, place = draw(st.sampled_from("ab-")), at(number * STEP)
        if xid == "-":
            continue
        if xid in opened:
            events.append(Decision(xid, place, START_TIME, "", draw(st.booleans())))
            del opened[xid]
        else:
            opened[xid] = Prepared(xid, place, place, draw(st.sampled_from([(), ("db.t",)])))
            events.append(opened[xid])
    places = st.sets(st.integers(1, length - 1)).map(sorted)
    windows, manifests = {}, {}
    for cut in draw(st.lists(places, min_size=1, max_size=2)):
        for low, high in pairwise([4, *(place * STEP - 50 for place in cut), length * STEP]):
            window = Window("shop", 1, at(low), at(high))
            key = layout.manifest_key(window)
            mine = [event for event in events if low <= event.position.offset < high]
            manifests[key] = Manifest(
                source="shop", epoch=1, identity=IDENTITY, window=window, chunk=None, gtid_first="", gtid_last="",
                first_time=START_TIME, last_time=START_TIME, transactions=0, events=0, files=(), schemas={},
                prepared=tuple(e for e in mine if isinstance(e, Prepared)),
                xa_decisions=tuple(e for e in mine if isinstance(e, Decision)),
            )  # fmt: skip
            age = draw(st.sampled_from([OLD, OLD, YOUNG]))
            windows[key] = StoredWindow(key, Point(1, 1, low), Point(1, 1, high), age)
    ordered = sorted(windows.values(), key=lambda one: (one.start, one.stop))
    return Stream(ordered, manifests, draw_cursors(draw, ordered, manifests))


def draw_cursors(draw, windows, manifests) -> list[Cursor]:
    end = windows[-1].stop
    found = [Cursor("shop", DRAIN, 1, 1, IDENTITY, at(end.offset))]
    for name in (LAKE, *draw(st.sets(st.sampled_from(["audit", "export"])))):
        steps = list(following(windows, windows[0].start, {1: end}, "shop"))
        read = [step.window.key for step in steps[: draw(st.integers(0, len(steps)))]]
        open_ = settle((), [(key, manifests[key]) for key in read]).open
        stop = manifests[read[-1]].window.stop if read else manifests[windows[0].key].window.start
        found.append(Cursor("shop", name, 1, 1, IDENTITY, stop, prepared=open_))
    return found


def left(stream: Stream, **other) -> list[StoredWindow]:
    return [verdict.window for verdict in judge_windows(stream.facts(**other)) if verdict.why]


@given(streams())
def test_every_consumer_reads_on_as_if_nothing_had_been_collected(stream):
    """The windows after its cursor, and the rows of every XA transaction that they commit."""
    kept = left(stream)
    keys = {window.key for window in kept}
    for cursor in stream.cursors:
        point, end = Point.at(1, cursor.position), stream.windows[-1].stop
        before = [step.window.key for step in following(stream.windows, point, {1: end}, "shop")]
        assert [step.window.key for step in following(kept, point, {1: end}, "shop")] == before
        if cursor.consumer != DRAIN:
            settled = settle(cursor.prepared, [(key, stream.manifests[key]) for key in before])
            assert {commit.manifest for found in settled.commits.values() for commit in found} <= keys
            assert {transaction.manifest for transaction in settled.open} <= keys


@given(streams())
def test_a_consumer_that_comes_later_reads_what_is_left_without_a_gap(stream):
    """From the earliest place on; what an XA transaction commits there is found by looking back."""
    kept = left(stream)
    end = stream.windows[-1].stop
    steps = list(following(kept, earliest(kept, {1: end}), {1: end}, "shop"))
    older_first = [(window.key, stream.manifests[window.key]) for window in kept]
    opened = ()
    for step in steps:
        manifest = stream.manifests[step.window.key]
        settled = settle(opened, [(step.window.key, manifest)])
        wanted = {decision.xid for _, decision in settled.unknown}
        before = [pair for pair in older_first if stream_start(stream, pair[0]) < step.window.start]
        assert {one.prepared.xid for one in opened_before(reversed(before), wanted, manifest)} == wanted
        opened = settled.open


def stream_start(stream: Stream, key: str) -> Point:
    return next(window.start for window in stream.windows if window.key == key)


@given(streams())
def test_batches_that_all_have_read_are_removed_when_they_are_old_enough(stream):
    """Rows of XA transactions apart."""
    ended = [replace(cursor, position=at(stream.windows[-1].stop.offset), prepared=()) for cursor in stream.cursors]
    verdicts = judge_windows(replace(stream.facts(), cursors=ended))
    young = False
    for verdict in verdicts:
        young = young or verdict.window.modified == YOUNG
        assert bool(verdict.why) >= young
        if verdict.why and not young:
            assert "XA" in verdict.why
    assert laggards(stream.windows, ended, LIMIT) == {}


@given(streams(), st.data())
def test_windows_after_the_watermark_of_an_unmerged_snapshot_are_kept(stream, data):
    """A late chunk is merged with them; where its watermark is not known, everything stays."""
    task = SnapshotTask("shop", 1, "s", "db", "t", 3, complete=True)
    merged = data.draw(st.integers(0, 2))
    cursors = [
        replace(cursor, snapshots=(task if cursor.consumer == DRAIN else replace(task, chunks=merged, complete=False),))
        for cursor in stream.cursors
    ]
    low = data.draw(st.none() | st.integers(4, stream.windows[-1].stop.offset))
    asked = []

    def watermark(_, number):
        asked.append(number)
        return None if low is None else Point(1, 1, low)

    kept = {v.window for v in judge_windows(replace(stream.facts(watermark=watermark), cursors=cursors)) if v.why}
    assert {window for window in stream.windows if low is None or window.stop > Point(1, 1, low)} <= kept
    assert set(asked) == {merged}


@given(streams(), st.integers(0, 2))
def test_chunks_that_a_merge_in_flight_reads_are_kept_after_their_snapshot_is_cancelled(stream, merged):
    """So do the windows after their watermark, and the drain cursor's word that it was given up."""
    cancelled = SnapshotTask("shop", 1, "s", "db", "t", 0, complete=True)
    planned = replace(cancelled, chunks=3)
    known = (replace(planned, chunks=merged, complete=False),) if merged else ()
    drain, lake, *others = stream.cursors
    drain = replace(drain, snapshots=(cancelled, replace(cancelled, snapshot_id="later", chunks=1)))
    lake = replace(lake, snapshots=known, in_flight_snapshots=(planned,))
    asked = []

    def watermark(task, number):
        asked.append((task.id, number))
        return Point(1, 1, 4)

    facts = replace(stream.facts(watermark=watermark), cursors=[drain, lake, *others])
    assert all(verdict.why for verdict in judge_windows(facts))
    assert (planned.id, merged) in asked
    assert planned.id not in ended_snapshots(facts.cursors, [planned.id])
    assert cancelled in pruned_drain(drain, lake, Point(9, 1, 4)).snapshots
    acknowledged = replace(lake, in_flight_snapshots=(), snapshots=(planned,))
    assert planned.id in ended_snapshots([drain, acknowledged, *others], [planned.id])
    assert cancelled not in pruned_drain(drain, acknowledged, Point(9, 1, 4)).snapshots


@given(streams(), st.sampled_from([DRAIN, LAKE]))
def test_no_batch_is_removed_while_the_pipeline_has_no_cursor(stream, missing):
    """A cursor that was lost is no leave to remove what it had not read."""
    without = [cursor for cursor in stream.cursors if cursor.consumer != missing]
    assert all(verdict.why for verdict in judge_windows(replace(stream.facts(), cursors=without)))
