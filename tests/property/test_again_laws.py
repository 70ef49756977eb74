"""Backfills on a table that is a dict: after any request, the table shows the source's rows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import SNAPSHOT_ROW
from tests.harness.generated.examples import examples
from tests.harness.generated.histories import STEP, Chunk, History, histories
from tests.harness.lake.batches import Row
from tests.harness.lake.planned import DictTable

KEEPING = st.sampled_from(["mirror", "soft_delete"])
LIVES = histories(statements=True)


def values(table):
    """The rows that stand; those that are marked as deleted have no value here."""
    return {key: value for key, (_, value) in table.rows.items() if value is not None}


def bounds(history):
    """Every offset at which a window begins or ends."""
    return sorted({offset for start, stop, _ in history.windows for offset in (start, stop)})


def stretch(draw, history):
    """Draw what a period takes: whole windows, and with a snapshot all up to where it is of one moment."""
    begin, end = sorted(draw.draw(st.lists(st.sampled_from(bounds(history)), min_size=2, max_size=2)))
    with_chunks = bool(history.chunks) and draw.draw(st.booleans())
    if with_chunks:
        begin = min(begin, *(chunk.low for chunk in history.chunks))
        end = max(end, *(chunk.high for chunk in history.chunks))
    return begin, end, with_chunks


@settings(max_examples=examples(300), deadline=None)
@given(LIVES, KEEPING, st.data())
def test_merging_any_range_again_at_any_time_keeps_the_sources_rows(history, mode, draw):
    """Between merges; a snapshot is included once it is complete in the table."""
    lake = DictTable(history, mode)
    for step in history.steps:
        lake.step(step)
        merged = lake.marker.merged_to
        if merged is None or draw.draw(st.booleans()):
            continue
        begin, _, with_chunks = stretch(draw, history)
        mark = lake.marker.snapshot("s1")
        whole = mark is not None and mark.complete
        before = dict(lake.rows)
        lake.again(min(begin, merged.offset), merged.offset, chunks=with_chunks and whole, side=False)
        assert lake.rows == before
    assert values(lake) == history.final


@settings(max_examples=examples(300), deadline=None)
@given(LIVES, KEEPING, st.data())
def test_a_backfill_restores_all_damaged_rows_of_its_range(history, mode, draw):
    """Rows that were deleted, changed, or restored after their delete; and a missing table."""
    lake = DictTable(history, mode)
    for step in history.steps:
        lake.step(step)
    end = bounds(history)[-1]
    gone = draw.draw(st.booleans())
    read = {key for key, (order, _) in lake.rows.items() if order[-1] == SNAPSHOT_ROW}
    for key in draw.draw(st.sets(st.integers(0, 5))):
        order, _ = lake.rows.pop(key, ((1, 1, STEP, 0), None))
        if draw.draw(st.booleans()):
            lake.rows[key] = (order, "wrong")
    if gone:
        lake.rows, lake.marker = {}, Marker()
    begin, _, with_chunks = stretch(draw, history)
    if not gone:
        covered = {row.values["id"] for start, _, rows in history.windows if start >= begin for row in rows}
        lake.again(begin, end, chunks=with_chunks, side=False)
        covered = covered | set(history.final) if with_chunks else covered - read
        assert {k: v for k, v in values(lake).items() if k in covered} == {
            k: v for k, v in history.final.items() if k in covered
        }
        return
    begins_there = not history.chunks and begin == STEP
    try:
        lake.again(begin, end, chunks=with_chunks, side=False, whole=begins_there)
    except MergeError:
        assert not with_chunks
        assert not begins_there
        return
    if lake.marker.merged_to is not None:
        assert values(lake) == history.final


@settings(max_examples=examples(300), deadline=None)
@given(LIVES, KEEPING, st.data())
def test_a_copy_is_the_same_in_any_order_of_backfills(history, mode, draw):
    """And with any repetitions."""
    side = DictTable(history, mode)
    parts = [stretch(draw, history) for _ in range(draw.draw(st.integers(0, 4)))]
    first, last = bounds(history)[0], bounds(history)[-1]
    lows, highs = [chunk.low for chunk in history.chunks], [chunk.high for chunk in history.chunks]
    parts.append((first, last, False))
    if history.chunks:
        parts.append((min(lows), max(highs), True))
    for begin, end, with_chunks in draw.draw(st.permutations(parts)):
        side.again(begin, end, chunks=with_chunks, side=True)
    assert values(side) == history.final


def test_a_snapshot_that_begins_within_a_window_ignores_what_was_truncated_before_it():
    """The row was created and removed in the window before the snapshot was read; the window comes again from that place on."""
    created = Row("c", 10, {"id": 2, "v": 100})
    later = Row("c", 60, {"id": 1, "v": 600})
    chunk = Chunk(0, 30, 30, {})
    window = (10, 70, (created, later))
    history = History((window,), (chunk,), (), {1: 600}, (21,), doubtful=False)
    copy = DictTable(history, "mirror")
    copy.again(10, 70, chunks=False, side=True)
    copy.again(30, 30, chunks=True, side=True)
    assert values(copy) == history.final
