"""After any expiry of snapshots, the newest marker is still found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.lake.expiry import LakeSnapshot, expirable

START_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@st.composite
def tables(draw):
    """A line of snapshots with branches off it, some with a marker; the last of the line is current."""
    count = draw(st.integers(1, 12))
    found = []
    for number in range(1, count + 1):
        parent = None if number == 1 else draw(st.integers(1, number - 1))
        found.append(LakeSnapshot(number, parent, START_TIME + timedelta(hours=number), draw(st.booleans())))
    current = draw(st.sampled_from(found)).id
    wanted = draw(st.sets(st.integers(1, count)))
    return found, current, wanted, START_TIME + timedelta(hours=draw(st.integers(0, count + 1)))


def marker_of(snapshots, current):
    """Walk back to the newest marker, as the merge does; None where the way is broken or ends without one."""
    known = {one.id: one for one in snapshots}
    at = known.get(current)
    while at is not None and not at.marked:
        at = known.get(at.parent)
    return at.id if at is not None else None


@given(tables())
def test_the_newest_marker_is_found_as_before(case):
    """Without it, the merged batches of the table are unknown."""
    snapshots, current, wanted, before = case
    gone = expirable(snapshots, current, wanted, before)
    left = [one for one in snapshots if one.id not in gone]
    assert marker_of(left, current) == marker_of(snapshots, current)


@given(tables())
def test_only_referenced_young_and_current_snapshots_are_kept(case):
    """Readers of a cut find its snapshot."""
    snapshots, current, wanted, before = case
    gone = set(expirable(snapshots, current, wanted, before))
    young = {one.id for one in snapshots if one.at >= before}
    assert not gone & (wanted | young | {current})
    way, at = set(), current
    known = {one.id: one for one in snapshots}
    while at is not None and at in known and at not in way:
        way.add(at)
        at = None if known[at].marked else known[at].parent
    assert gone == set(known) - wanted - young - way


def test_a_table_without_snapshots_has_none_to_expire():
    """A table that was created and never written to."""
    assert expirable([], None, set(), START_TIME) == ()
