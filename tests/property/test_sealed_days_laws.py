"""Laws of days that are complete: each is announced once, none before the lake has all of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from cdc_lib.model.sealed_days import DAY, advanced, days_after, end_of, last_ended, start_of

ZONES: st.SearchStrategy[tzinfo] = st.sampled_from(
    [
        UTC,
        *map(
            ZoneInfo,
            # Clocks that go back at midnight, or skip it; a day that a country left out; odd offsets.
            [
                "Europe/Berlin",
                "America/Havana",
                "America/Sao_Paulo",
                "America/St_Johns",
                "Pacific/Apia",
                "Asia/Kathmandu",
            ],
        ),
    ]
)
TIMES = st.integers(0, 40 * 365 * 86400).map(
    lambda seconds: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
DATES = st.dates(date(1990, 1, 1), date(2030, 1, 1))


@given(at=TIMES, zone=ZONES)
@example(at=datetime(2010, 11, 7, 2, 31, tzinfo=UTC), zone=ZoneInfo("America/St_Johns"))
@example(at=datetime(2017, 10, 15, 2, 59, 59, tzinfo=UTC), zone=ZoneInfo("America/Sao_Paulo"))
def test_after_a_day_has_ended_no_clock_of_its_zone_shows_it(at, zone):
    """Also where clocks go back over midnight: no commit of the day comes later."""
    day = last_ended(at, zone)
    later = (at + timedelta(minutes=minutes) for minutes in range(0, 3 * 60, 7))
    assert all(one.astimezone(zone).date() > day for one in later)


@given(at=TIMES, zone=ZONES)
def test_a_day_ends_at_most_an_hour_after_its_midnight(at, zone):
    """A day that is over is not held back until the next one. Apia left a whole day out."""
    assert at.astimezone(zone).date() - last_ended(at, zone) <= 2 * DAY
    assert last_ended(at + timedelta(hours=1), zone) >= at.astimezone(zone).date() - (
        2 * DAY if zone == ZoneInfo("Pacific/Apia") else DAY
    )


@given(day=DATES, zone=ZONES)
def test_a_day_ends_when_the_next_one_begins(day, zone):
    """No time is between two days."""
    assert end_of(day, zone) == start_of(day + DAY, zone)
    assert last_ended(end_of(day, zone), zone) >= day
    assert last_ended(end_of(day, zone) - timedelta(microseconds=1), zone) < day


@given(looks=st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans(), st.booleans()), max_size=20))
@example(looks=[(3, False, False, False), (0, True, False, False), (0, True, True, False), (0, True, True, True)])
def test_each_day_is_announced_once_whatever_is_killed(looks):
    """A task looks, emits, succeeds, and notes what was announced; it may die before each step, and Airflow may forget its events."""
    start = date(2026, 11, 20)
    sealed, through = start, start
    events: list[date] = []
    forgotten: list[date] = []
    for ended, succeeds, notes, forgets in looks:
        sealed += DAY * ended
        known = {day for day in events if day not in forgotten and day > through}
        if notes:
            through = advanced(through, known)
        waiting = [day for day in days_after(through, sealed) if day not in known]
        if succeeds:  # Airflow writes success and events in one transaction
            events += waiting
        if forgets:  # whoever cleans Airflow's database keeps at least what the last run wrote
            forgotten += [day for day in events if day <= through]
    assert events == sorted(set(events))
    if looks and looks[-1][1]:
        assert events == list(days_after(start, sealed))
