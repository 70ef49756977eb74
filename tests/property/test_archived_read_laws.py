"""Rows of snapshots among changes: random lives of a row, chunks read at any moment in them, and the chunks that may have a key."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.model.manifest import OP
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.read.archive.chunk_keys import chunks_with_key
from cdc_lib.read.archive.reads import ChunkRow, with_reads
from cdc_lib.read.archive.rows import KeyChanges, VersionShape
from cdc_lib.read.archive.versions import compared
from cdc_lib.read.columns import ReadColumn
from tests.harness.generated.examples import examples
from tests.harness.lake.batches import START_TIME

TYPES = {"_epoch": pa.int32(), "_binlog": pa.int32(), "_offset": pa.int64(), "_row": pa.int64(), "v": pa.int32()}
SHAPE = VersionShape.of("shop.t", [ReadColumn(name, number, of) for number, (name, of) in enumerate(TYPES.items(), 1)])


def changes(*found):
    """Return changes of a key, each an operation, an offset, a row and a value."""
    rows = [
        {OP: op, "_ts": START_TIME, "_epoch": 1, "_binlog": 1, "_offset": at, "_row": row, "v": value}
        for op, at, row, value in found
    ]
    return KeyChanges(pa.Table.from_pylist(rows, SHAPE.schema), (frozenset({"v"}),) * len(rows))


@st.composite
def lives(draw):
    """Return a row's state before each offset ten apart, its changes there, and what chunks read at moments between watermarks."""
    states, made = [draw(st.none() | st.integers(0, 2))], []
    for number in range(draw(st.integers(0, 8))):
        before, value = states[-1], draw(st.none() | st.integers(0, 2))
        if value != before:
            op = "c" if before is None else "d" if value is None else "u"
            made.append((op, number * 10 + 10, 0, before if value is None else value))
        states.append(value)
    reads = []
    for _ in range(draw(st.integers(0, 3))):
        low, moment, high = sorted(draw(st.integers(0, len(states) - 1)) for _ in range(3))
        if states[moment] is not None:
            point, until = (Point(1, 1, number * 10 + 5) for number in (low, high))
            reads.append(ChunkRow(changes(("r", point.offset, SNAPSHOT_ROW, states[moment])), point, until, ""))
    return states, made, reads


@settings(max_examples=examples(300), deadline=None)
@given(lives())
def test_each_version_is_the_row_as_of_its_position_and_no_change_is_lost(life):
    """A read between whose watermarks nothing changed tells the row; versions that follow each other differ."""
    states, made, reads = life
    found = compared(with_reads(changes(*made), reads, SHAPE), SHAPE).to_pylist()[::-1]
    assert [(one[OP], one["_offset"], 0, one["v"]) for one in found if one[OP] != "r"] == made
    assert [one["_offset"] for one in found] == sorted(one["_offset"] for one in found)
    for before, one in zip([None, *found], found, strict=False):
        state = states[one["_offset"] // 10]
        assert (None if one[OP] == "d" else one["v"]) == state
        if one[OP] == "r" and before is not None:
            assert before[OP] == "d" or before["v"] != one["v"]
    for read in reads:
        if not any(read.low.offset <= at < read.high.offset for _, at, _, _ in made):
            last = [one for one in found if one["_offset"] <= read.low.offset][-1]
            assert last["v"] == states[read.low.offset // 10]
            assert last[OP] != "d"


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), unique=True),
    st.data(),
)
def test_the_chunks_that_may_have_a_key_are_found_by_their_last_keys(keys, draw):
    """Also among chunks without rows, and where only the first column of a key can be compared."""
    keys, compared_parts = sorted(keys), draw.draw(st.integers(1, 2))
    bounds = sorted(draw.draw(st.sets(st.integers(0, len(keys)), max_size=6)) | {0, len(keys)})
    chunks = [keys[low:high] for low, high in pairwise(bounds)]
    for _ in range(draw.draw(st.integers(0, 3))):
        chunks.insert(draw.draw(st.integers(0, len(chunks))), [])
    asked = []

    def last_key(number):
        asked.append(number)
        return chunks[number][-1][:compared_parts] if chunks[number] else None

    key = draw.draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
    numbers = chunks_with_key(len(chunks), last_key, key, 2)
    holding = {number for number, chunk in enumerate(chunks) if key in chunk}
    assert holding <= set(numbers)
    if compared_parts == 2:
        assert len(numbers) <= 1
    else:
        begins = bisect_left([chunk[-1][:1] for chunk in chunks if chunk], key[:1])
        with_rows = [number for number, chunk in enumerate(chunks) if chunk]
        assert not numbers or numbers[0] == with_rows[begins]
    if not any(not chunk for chunk in chunks):
        assert len(asked) <= 2 * (len(chunks).bit_length() + 1)
