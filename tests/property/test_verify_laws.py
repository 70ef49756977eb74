"""A row in flight is never reported as wrong, and a wrong row is reported once nothing moves."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.position import Point
from cdc_lib.verify.checksums import ListedRow, RangeBucket, Sum, of_ranges, suspects, unequal
from cdc_lib.verify.judgement import Half, RowState, Verdict
from cdc_lib.verify.judgement import judge as judge_half

END = 40
"""Positions are numbers; a change is at one."""

histories = st.dictionaries(st.integers(1, END - 1), st.none() | st.integers(0, 2), max_size=8)
"""By position, what the row becomes: None is a delete."""


def state(history, at):
    """The row, and the change that wrote it, when all changes before a position are applied."""
    changes = [place for place in sorted(history) if place < at]
    if not changes or history[changes[-1]] is None:
        return None
    return RowState((str(history[changes[-1]]),), 1, Point(1, 1, changes[-1]))


def look_at(history, low, read, high, lake_at, damage=lambda row: row):
    """A look whose SELECT sees the row as of ``read``; the lake may be damaged."""
    source, lake = state(history, read), damage(state(history, lake_at))
    here = None if source is None else RowState(source.cells, source.copies)
    return Half(Point(1, 1, low), Point(1, 1, high), here), lake, Point(1, 1, lake_at)


def judge(look, before):
    """The verdict after two looks."""
    lacked = None
    if before is not None:
        half, lake, lake_at = before
        lacked = half if lake is None and lake_at >= half.high else None
    return judge_half(*look, lacked)


@st.composite
def looks(draw):
    """Where two looks one after the other read; each knows low <= read <= high."""
    places = sorted(draw(st.lists(st.integers(1, END), min_size=8, max_size=8)))
    first, second = places[:4], places[4:]
    # The lake may also be read before it has come so far.
    return [(low, read, high, draw(st.integers(low, end))) for low, read, high, end in (first, second)]


@given(histories, looks())
def test_a_correct_row_is_never_wrong_in_the_first_look(history, found):
    """For any change and any position of the lake."""
    for one in found:
        assert judge(look_at(history, *one), None) is not Verdict.WRONG


@given(histories, looks())
def test_a_correct_row_is_wrong_in_two_looks_only_if_it_was_deleted_and_inserted_twice(history, found):
    """Both times right after a look, with the same values: the only case that cannot be distinguished."""
    before, look = (look_at(history, *one) for one in found)
    if judge(look, before) is Verdict.WRONG:
        deletes = [place for place, value in history.items() if value is None]
        assert len(deletes) >= 2
        assert len(history) - len(deletes) >= 2


damages = st.sampled_from(
    [
        lambda _row: None,
        lambda row: RowState(("other",), 1, Point(1, 1, 0)) if row is None else RowState(("other",), 1, row.written),
        lambda row: None if row is None else RowState(row.cells, 2, row.written),
    ]
)


@given(histories, st.integers(2, END), damages)
def test_a_damaged_row_is_wrong_once_nothing_moves(history, at, damage):
    """The lake is at the position of the source: one look is enough."""
    look = look_at(history, at, at, at, at, damage)
    same = look[0].source is None and look[1] is None
    assert judge(look, None) is (Verdict.SAME if same else Verdict.WRONG)


@given(histories, damages, st.integers(0, 5))
def test_a_damaged_row_is_wrong_while_others_change(history, damage, ahead):
    """Other rows change, so the lake is never at the position of the source."""
    low = END + 1
    before, look = (look_at(history, at, at + 1, at + 2, at + 3 + ahead, damage) for at in (low, low + 20))
    same = look[0].source is None and look[1] is None
    verdicts = {judge(before, None), judge(look, before)}
    assert (Verdict.SAME if same else Verdict.WRONG) in verdicts


rows = st.dictionaries(st.text("abc", min_size=1, max_size=2), st.integers(0, 2**32 - 1), max_size=12)


@given(rows, rows)
def test_different_rows_are_in_unequal_parts(source, lake):
    """Comparing parts finds the same rows as comparing all rows, except for equal sums by chance."""

    def parts(side):
        found: dict[RangeBucket, Sum] = {}
        for name, hashed in side.items():
            part = RangeBucket(len(name), ord(name[0]) % 2)
            before = found.get(part, Sum(0, 0))
            found[part] = Sum(before.rows + 1, before.hashes + hashed)
        return found

    here, there = parts(source), parts(lake)
    listed = [[ListedRow(name, hashed) for name, hashed in side.items()] for side in (source, lake)]
    everything = {name for name in source.keys() | lake.keys() if source.get(name) != lake.get(name)}
    assert set(suspects(*listed)) == everything
    for name in everything:
        part = RangeBucket(len(name), ord(name[0]) % 2)
        if here.get(part, Sum(0, 0)) != there.get(part, Sum(0, 0)):
            continue
        sums = [
            sum(h for n, h in side.items() if RangeBucket(len(n), ord(n[0]) % 2) == part) for side in (source, lake)
        ]
        assert sums[0] == sums[1]  # two changes that cancel each other out
    assert set(unequal(of_ranges(here), of_ranges(there))) <= {len(name) for name in everything}


def test_the_same_change_in_two_rows_does_not_cancel_out():
    """As it would in an XOR of CRC32, which is linear."""

    def hashed(text):
        return zlib.crc32(str(zlib.crc32(text.encode())).encode())

    before, after = ["1#open", "2#open"], ["1#paid", "2#paid"]
    xor = [zlib.crc32(one.encode()) ^ zlib.crc32(two.encode()) for one, two in (before, after)]
    assert xor[0] == xor[1]
    assert sum(map(hashed, before)) != sum(map(hashed, after))
