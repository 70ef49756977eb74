"""Batches that are merged again, run on a table that is a dict: whatever was asked for, the table shows what the source had."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import SNAPSHOT_ROW
from tests.harness.histories import STEP, histories
from tests.harness.planned import DictTable

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


@settings(max_examples=300, deadline=None)
@given(LIVES, KEEPING, st.data())
def test_merging_any_part_again_at_any_time_leaves_the_table_as_the_source(history, mode, draw):
    """Between merges, whose work continues as if nothing had been; a snapshot counts once the table has it whole."""
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


@settings(max_examples=300, deadline=None)
@given(LIVES, KEEPING, st.data())
def test_a_damaged_table_has_all_rows_back_that_the_part_tells_of(history, mode, draw):
    """Rows that were taken out, changed, or put back after their delete; and a table that is gone altogether."""
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
        told = {row.values["id"] for start, _, rows in history.windows if start >= begin for row in rows}
        lake.again(begin, end, chunks=with_chunks, side=False)
        told = told | set(history.final) if with_chunks else told - read
        assert {k: v for k, v in values(lake).items() if k in told} == {
            k: v for k, v in history.final.items() if k in told
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


@settings(max_examples=300, deadline=None)
@given(LIVES, KEEPING, st.data())
def test_a_table_beside_is_the_same_whatever_order_its_parts_come_in(history, mode, draw):
    """And however often each of them does."""
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
