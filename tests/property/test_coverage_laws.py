"""Laws of rolling comparisons: every key is compared within the period, and the cost follows the period."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.model.coverage import Coverage
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.coverage.hours import ALL_DAY, Hours
from cdc_lib.verify.coverage.schedule import MAX_RANGES, Cadence, accrued, begun, compared, cut_off, next_unit

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
UNIT = 20
KEYS = 1000
EMPTY = Coverage("shop", TableName("shop", "orders"), "lake.shop.orders", BEGAN, BEGAN)


class Table:
    """A table of integer keys, and when each key was compared last, as a comparison itself sees it.

    Args:
        keys: at the beginning.
        estimate: of the number of rows, which the server gives.
        cadence: of the comparison.
    """

    def __init__(self, keys, estimate, cadence):
        self.keys = set(keys)
        self.cadence = cadence
        self.coverage = begun(EMPTY, estimate, UNIT)
        self.at = [BEGAN] * KEYS
        self.cost = 0

    def run(self, now, killed=(), busy=()):
        """Compare what is due; a run that is killed has stored all but its last comparison; busy keys make one fail."""
        if not self.cadence.hours.contains(now):
            return
        coverage, tried = accrued(self.coverage, now, self.cadence), set()
        for number in range(10_000):
            unit = next_unit(coverage, now, self.cadence, UNIT, tried)
            if unit is None:
                return
            ordered = sorted(self.keys)
            first = bisect_right(ordered, int(unit.after[0])) if unit.after else 0
            last = bisect_right(ordered, int(unit.end[0])) if unit.end else len(ordered)
            found = ordered[first:last][:UNIT]
            whole = last - first <= UNIT
            reached = None if whole else ((str(found[-1]),), (str(found[-1]),))
            self.cost += max(1, len(found))
            if number in killed:
                return
            if set(found) & set(busy):
                coverage = cut_off(coverage, unit, reached, len(found))
                tried.add(unit.end if reached is None else reached[0])
                continue
            coverage = compared(coverage, unit, reached, len(found), now, 1, Position("binlog.000001", 4))
            self.coverage = coverage
            low = int(unit.after[0]) + 1 if unit.after else 0
            high = int((reached[0] if reached else unit.end or (KEYS,))[0]) + 1
            self.at[low:high] = [now] * (min(high, KEYS) - low)
        raise AssertionError("the run does not end")

    def oldest(self):
        """Return when the key that waits longest was compared; all keys count, whether there is a row or not."""
        return min(self.at)


@st.composite
def lives(draw):
    """Return a cadence, the gaps between runs, and a table that changes between them."""
    gap = draw(st.integers(1, 12))
    period = draw(st.integers(max(4 * gap, 24), 200))
    gaps = draw(st.lists(st.integers(1, gap), min_size=20, max_size=60))
    rows = draw(st.integers(0, KEYS))
    estimate = draw(st.integers(0, 3 * KEYS))
    changes = draw(st.lists(st.tuples(st.booleans(), st.integers(0, KEYS - 1), st.integers(0, KEYS)), max_size=20))
    return Cadence(period * HOUR, gap * HOUR), gaps, rows, estimate, changes


@given(lives())
def test_no_key_waits_longer_than_the_period_however_the_table_grows_and_shrinks(life):
    """Whatever the estimate of its rows, as long as the next run comes within the longest time between two runs."""
    cadence, gaps, rows, estimate, changes = life
    table = Table(range(rows), estimate, cadence)
    now, changes = BEGAN, list(changes)
    for gap in gaps:
        table.run(now)
        assert table.oldest() + cadence.period > now + gap * HOUR or table.oldest() == now
        assert table.coverage.oldest_at <= table.oldest()
        assert len(table.coverage.ranges) <= MAX_RANGES
        now += gap * HOUR
        assert table.oldest() + cadence.period >= now
        if changes:
            grows, first, count = changes.pop()
            keys = set(range(first, min(KEYS, first + count)))
            table.keys = table.keys | keys if grows else table.keys - keys


@given(lives(), st.sets(st.integers(0, 3), max_size=3), st.integers(1, 40))
def test_a_run_that_is_killed_or_late_loses_one_comparison_and_the_next_ones_make_up_for_it(life, killed, late):
    """After any time without runs, one whole run is enough that no key is late until the next one."""
    cadence, gaps, rows, estimate, _ = life
    table = Table(range(rows), estimate, cadence)
    now = BEGAN
    for gap in gaps[:20]:
        table.run(now, killed)
        assert table.coverage.oldest_at <= table.oldest()
        now += gap * late * HOUR
    table.run(now)
    assert table.oldest() + cadence.period > now + cadence.gap


@settings(max_examples=15)
@given(st.integers(80, KEYS), st.integers(1, 6), st.sampled_from([ALL_DAY, Hours.of("22:00-06:00")]))
def test_the_cost_follows_the_period_and_not_the_number_of_runs(rows, minutes, hours):
    """A table is gone through about once in the period, whether runs come every hour or ten times as often."""
    costs = []
    for gap in (HOUR, minutes * 6 * timedelta(minutes=1)):
        cadence = Cadence(100 * HOUR, gap, hours)
        table = Table(range(rows), rows, cadence)
        now = BEGAN
        while now < BEGAN + 400 * HOUR:
            table.run(now)
            now += gap
        costs.append(table.cost)
    assert all(4 * rows <= cost <= 6.5 * rows + 10 * UNIT for cost in costs), costs


@given(st.integers(100, KEYS), st.integers(0, 99))
def test_rows_that_cannot_be_compared_keep_no_other_keys_from_being_compared(rows, busy):
    """Their own range stays old, and that is what is shown."""
    cadence = Cadence(50 * HOUR, HOUR)
    table = Table(range(rows), rows, cadence)
    now = BEGAN
    for _ in range(60):
        table.run(now, busy={busy})
        now += HOUR
    assert table.at[busy] == BEGAN
    assert table.coverage.overdue(now, cadence.period)
    assert sum(at > BEGAN for at in table.at[:rows]) >= rows - 2 * UNIT
