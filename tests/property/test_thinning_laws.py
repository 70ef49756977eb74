"""However often something runs, few points in time are kept, and the newest are among them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.lake.expiry import LakeSnapshot, branch_snapshots, expirable, thin
from cdc_lib.model.thinning import NEWEST, thinned

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAYS = 20


@st.composite
def moments(draw):
    """Times of the last weeks, close together or far apart."""
    gaps = draw(st.lists(st.sampled_from([1, 60, 1800, 3600, 90_000]), max_size=300))
    found, at = {}, NOW
    for number, gap in enumerate(gaps):
        found[number] = at
        at -= timedelta(seconds=gap)
        if NOW - at > timedelta(days=DAYS):
            break
    return found


@given(moments())
def test_the_newest_stay_and_the_rest_is_bounded_by_hours_and_days(found):
    kept = thinned(found, NOW)
    newest = sorted(found, key=lambda one: found[one], reverse=True)[:NEWEST]
    assert set(newest) <= kept
    assert len(kept) <= NEWEST + 25 + DAYS + 1


@given(moments())
def test_one_of_each_day_and_of_each_hour_of_the_last_day_is_kept(found):
    """So a kept point is at most that far away."""
    kept = thinned(found, NOW)
    for at in found.values():
        width = timedelta(hours=1) if NOW - at < timedelta(days=1) else timedelta(days=1)
        assert any(abs(found[one] - at) <= width for one in kept)


@given(moments())
def test_what_was_kept_is_kept_when_nothing_came(found):
    kept = thinned(found, NOW)
    assert thinned({one: found[one] for one in kept}, NOW) == kept


@st.composite
def lines(draw):
    """A table's snapshots, a branch off its line, which of them have markers, and which cuts name."""
    count = draw(st.integers(1, 120))
    step = draw(st.sampled_from([30, 600, 7200]))
    found = [
        LakeSnapshot(
            number,
            number - 1 or None,
            NOW - timedelta(seconds=step * (count - number)),
            draw(st.booleans()) if number % 5 == 0 else number % 3 == 1,
        )
        for number in range(1, count + 1)
    ]
    off = draw(st.integers(1, count))
    branch = [LakeSnapshot(1000 + i, off if not i else 999 + i, found[off - 1].at, marked=False) for i in range(3)]
    cuts = draw(st.sets(st.integers(1, count), max_size=5))
    return [*found, *branch], count, 1002, cuts


@given(lines())
def test_thinning_keeps_all_that_the_table_a_branch_or_a_cut_needs(case):
    snapshots, current, head, cuts = case
    wanted = branch_snapshots(snapshots, current, [head])
    assert wanted == {1000, 1001, 1002}
    gone = set(thin(snapshots, current, wanted, cuts, NOW))
    assert not gone & ({current} | wanted | cuts)
    assert gone <= set(
        expirable(snapshots, current, wanted | cuts, NOW)
    )  # the newest marker stays, as the laws of expiry say
    known = {one.id: one for one in snapshots}
    if cuts:
        last = max(known[one].at for one in cuts)
        assert all(known[one].at < last for one in gone)


def test_a_day_of_a_minutes_schedule_leaves_as_many_snapshots_as_a_week_of_it():
    """The number does not grow, whatever the schedule."""
    left = {}
    for days in (2, 7):
        count = days * 1440
        snapshots = [
            LakeSnapshot(n, n - 1 or None, NOW - timedelta(minutes=count - n), marked=True) for n in range(1, count + 1)
        ]
        left[days] = count - len(thin(snapshots, count, (), (), NOW))
    assert left[2] <= NEWEST + 26
    assert left[7] <= left[2] + 5
