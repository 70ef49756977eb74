"""Which ranges of a table are compared in a run, so that all are compared within the period. Pure.

Two rules. The table is gone through at a constant rate: the share of it that may be compared grows with time, by the whole table in
:data:`LAP` of the period, and the oldest range is next. And a range that would be older than the period before the next run is
compared with any share. So the cost follows the period, however often runs come, and no range is late while runs come as
scheduled.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cdc_lib.model.coverage import Coverage, CoveredRange, Key
from cdc_lib.model.position import Position
from cdc_lib.verify.coverage.hours import ALL_DAY, Hours

LAP = 0.8
"""Part of the period in which the whole table is gone through; the rest is for runs that are late and tables that grow."""

MAX_RANGES = 200
"""Ranges of one table that are kept apart; neighbours that were compared at nearly the same time become one."""

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often and when ranges are compared.

    Args:
        period: within which each range is to be compared.
        gap: the longest time between two runs.
        hours: of the day in which runs compare.
    """

    period: timedelta
    gap: timedelta
    hours: Hours = ALL_DAY


@dataclass(frozen=True, slots=True)
class Unit:
    """Keys to go through from their beginning, as far as one comparison gets.

    Args:
        number: of the range that has them.
        after: the key before them; None at the beginning of the table.
        after_text: the same key as canonical texts.
        end: the last one; None at the end of the table.
        end_text: the same key as canonical texts.
    """

    number: int
    after: Key | None
    after_text: Key | None
    end: Key | None
    end_text: Key | None


def begun(coverage: Coverage, rows: int, unit_rows: int) -> Coverage:
    """Return the coverage of a table of which nothing was compared yet; its first unit is due at once.

    Args:
        coverage: its names and the time.
        rows: estimated number of rows.
        unit_rows: rows of one comparison.
    """
    share = min(1.0, unit_rows / max(1, rows))
    return replace(coverage, share=share, ranges=(CoveredRange(None, None, rows),))


def accrued(coverage: Coverage, now: datetime, cadence: Cadence) -> Coverage:
    """Return the coverage with the share that has grown since its last run."""
    lap = LAP * cadence.period * (cadence.hours.length / timedelta(days=1))
    passed = cadence.hours.within(coverage.ran_at, now) / lap
    return replace(coverage, share=min(1.0, coverage.share + max(0.0, passed)), ran_at=max(now, coverage.ran_at))


def next_unit(
    coverage: Coverage, began: datetime, cadence: Cadence, unit_rows: int, tried: Collection[Key | None] = ()
) -> Unit | None:
    """Return what is compared next; None if nothing is due in this run.

    Args:
        coverage: with the share of this run.
        began: when the run began.
        cadence: of the source file.
        unit_rows: rows of one comparison.
        tried: ends of ranges that this run could not compare.
    """
    ranges = enumerate(coverage.ranges)
    waiting = [n for n, one in ranges if (one.at is None or one.at < began) and one.end not in tried]
    if not waiting:
        return None
    number = min(waiting, key=lambda n: coverage.ranges[n].at or _NEVER)
    oldest = coverage.ranges[number]
    needed = min(unit_rows, _weight(oldest)) / _total(coverage.ranges)
    is_late = (oldest.at or coverage.since) + cadence.period <= cadence.hours.next_run(began, cadence.gap)
    if not is_late and coverage.share < needed:
        return None
    before = coverage.ranges[number - 1] if number else None
    return Unit(
        number,
        before.end if before is not None else None,
        before.end_text if before is not None else None,
        oldest.end,
        oldest.end_text,
    )


def compared(
    coverage: Coverage,
    unit: Unit,
    reached: tuple[Key, Key] | None,
    rows: int,
    at: datetime,
    epoch: int,
    position: Position,
) -> Coverage:
    """Return the coverage after a comparison.

    Args:
        coverage: from which the unit was chosen.
        unit: what was to be compared.
        reached: the last key that was compared, as statements and as canonical texts have it; None if all of the unit was.
        rows: that the source had there.
        at: time of the comparison (UTC).
        epoch: of the position.
        position: of the cut.
    """
    end, end_text = reached if reached is not None else (unit.end, unit.end_text)
    first = CoveredRange(end, end_text, rows, at, epoch, position)
    ranges = _divided(coverage, unit, first, rest=reached is not None)
    return replace(coverage, share=_spent(coverage, rows), ranges=_thinned(ranges))


def cut_off(coverage: Coverage, unit: Unit, reached: tuple[Key, Key] | None, rows: int) -> Coverage:
    """Return the coverage with a range of its own for keys that could not be compared, so that those after them are next.

    They have cost what a comparison costs.

    Args:
        coverage: from which the unit was chosen.
        unit: what was to be compared.
        reached: the last of these keys, as statements and as canonical texts have it; None if all of the unit was to be compared.
        rows: that the source has there.
    """
    share = _spent(coverage, rows)
    if reached is None:
        return replace(coverage, share=share)
    first = replace(coverage.ranges[unit.number], end=reached[0], end_text=reached[1], rows=rows)
    return replace(coverage, share=share, ranges=_divided(coverage, unit, first, rest=True))


def _divided(coverage: Coverage, unit: Unit, first: CoveredRange, *, rest: bool) -> tuple[CoveredRange, ...]:
    """Return the ranges with another one at the beginning of a unit's, or in its place if nothing of it is left."""
    old = coverage.ranges[unit.number]
    parts = (first, replace(old, rows=max(1, old.rows - first.rows))) if rest else (first,)
    return (*coverage.ranges[: unit.number], *parts, *coverage.ranges[unit.number + 1 :])


def _spent(coverage: Coverage, rows: int) -> float:
    return max(0.0, coverage.share - max(1, rows) / max(_total(coverage.ranges), rows))


def _weight(one: CoveredRange) -> int:
    """Return a range's rows; an empty one costs a statement too."""
    return max(1, one.rows)


def _total(ranges: Sequence[CoveredRange]) -> int:
    return sum(map(_weight, ranges))


def _thinned(ranges: tuple[CoveredRange, ...]) -> tuple[CoveredRange, ...]:
    """Join neighbours until there are few enough: those whose comparisons are the least time apart, with the older time."""
    while len(ranges) > MAX_RANGES:
        number = min(range(len(ranges) - 1), key=lambda n: _apart(ranges[n], ranges[n + 1]))
        one, other = ranges[number], ranges[number + 1]
        older = one if (one.at or _NEVER) <= (other.at or _NEVER) else other
        joined = replace(older, end=other.end, end_text=other.end_text, rows=one.rows + other.rows)
        ranges = (*ranges[:number], joined, *ranges[number + 2 :])
    return ranges


def _apart(one: CoveredRange, other: CoveredRange) -> timedelta:
    return abs((one.at or _NEVER) - (other.at or _NEVER))
