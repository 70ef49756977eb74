from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.changed_rows import OpenRow
from cdc_lib.model.position import Point
from cdc_lib.verify.judgement import Half, Outcome, RowState, Verdict, digest, judge, later

END = 40
"""Positions are numbers; a change is at one."""

OLD, NEW = RowState(("1", "old")), RowState(("1", "new"))


def at(place):
    return Point(1, 1, place)


def row(state, written):
    return RowState(state.cells, 1, at(written))


def kept(source, low=10, high=12, before=None):
    return OpenRow(("1",), "b", "m", at(low), at(high), digest(source) if source is not None else "", before)


def test_a_row_that_differs_is_wrong_at_once_where_the_source_rests():
    """No change came after the cut; otherwise the row may have one."""
    half = Half(at(10), at(10), NEW)
    assert judge(half, row(OLD, 5), at(10)) is Verdict.WRONG
    assert judge(half, row(NEW, 5), at(10)) is Verdict.SAME
    assert judge(half, row(OLD, 5), at(9)) is Verdict.OPEN


def test_the_lake_of_a_later_cut_judges_what_the_source_had():
    """Equal then; wrong if nothing changed it since; open if something did."""
    assert later(kept(NEW), row(NEW, 9), at(20)) == Outcome(Verdict.SAME)
    assert later(kept(NEW), row(OLD, 9), at(20)) == Outcome(Verdict.WRONG)
    assert later(kept(NEW), row(OLD, 11), at(20)) == Outcome(Verdict.OPEN)
    assert later(kept(None), row(OLD, 9), at(20)) == Outcome(Verdict.WRONG)
    assert later(kept(None), None, at(20)) == Outcome(Verdict.SAME)


def test_a_look_waits_until_the_lake_has_everything_from_before_it():
    """What is known of the look before it is kept."""
    assert later(kept(NEW, before="x"), row(OLD, 9), at(11)) == Outcome(Verdict.OPEN, "x", waits=True)


def test_a_row_that_the_lake_lacks_is_wrong_in_two_looks_in_succession():
    """If the source had the same row both times."""
    first = later(kept(NEW), None, at(20))
    assert first == Outcome(Verdict.OPEN, digest(NEW))
    assert later(kept(NEW, before=first.before), None, at(30)) == Outcome(Verdict.WRONG)
    assert later(kept(OLD, before=first.before), None, at(30)) == Outcome(Verdict.OPEN, digest(OLD))


def test_digests_tell_apart_what_cells_tell_apart():
    """NULL from its sign, one cell from two, one row from two copies."""
    rows = [(None,), ("~",), ("",), ("a", "b"), ("ab",), ("a1:b",), ("a", None), (None, "a")]
    states = [RowState(cells, copies) for cells in rows for copies in (1, 2)]
    assert len({digest(one) for one in states}) == len(states)


histories = st.dictionaries(st.integers(1, END - 1), st.none() | st.integers(0, 2), max_size=8)
"""By position, what the row becomes: None is a delete."""


def state(history, place):
    """The row, and the change that wrote it, when all changes before a position are applied."""
    changes = [one for one in sorted(history) if one < place]
    if not changes or history[changes[-1]] is None:
        return None
    return RowState((str(history[changes[-1]]),), 1, at(changes[-1]))


@given(histories, st.lists(st.integers(1, END), min_size=4, max_size=4).map(sorted), st.integers(0, END))
def test_a_correct_row_is_never_wrong_in_one_look(history, places, lake_before):
    """For any change, wherever the two halves are read."""
    low, read, high, lake_at = places
    source = state(history, read)
    half = RowState(source.cells) if source is not None else None
    assert judge(Half(at(low), at(high), half), state(history, lake_before), at(lake_before)) is not Verdict.WRONG
    one = OpenRow(("1",), "b", "m", at(low), at(high), digest(half) if half is not None else "")
    assert later(one, state(history, lake_at), at(lake_at)).verdict is not Verdict.WRONG
