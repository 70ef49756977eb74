"""What holds of every forecast: it only shrinks, is never negative, and has no end where nothing is purged."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.position import Position
from cdc_lib.model.retention_forecast import BinlogExpiry, FileTimes
from cdc_lib.plan.retention_forecast import retention_forecast

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = st.integers(0, 10**7)
SIZES = st.lists(st.integers(4, 10**10), min_size=1, max_size=6)


@st.composite
def places(draw):
    """Files, a cursor in one of them, when that was made and ended, a rate and what purges."""
    sizes = draw(SIZES)
    files = tuple((f"binlog.{number:06d}", size) for number, size in enumerate(sizes, 999_997))
    name, size = draw(st.sampled_from(files))
    made = BEGAN + timedelta(seconds=draw(SECONDS))
    ended = None if name == files[-1][0] else made + timedelta(seconds=draw(SECONDS))
    return {
        "position": Position(name, draw(st.integers(4, size))),
        "files": files,
        "binlog_end": Position(*files[-1]),
        "expiry": BinlogExpiry(draw(st.none() | SECONDS.map(float)), draw(st.none() | st.integers(1, 10**11))),
        "made": made,
        "ended": ended,
        "rate": draw(st.none() | st.floats(1, 1e9)),
    }


def forecast(*, made, ended, now, **place):
    return retention_forecast(times=FileTimes(made, ended, now), **place)


@given(places(), SECONDS, SECONDS)
def test_less_is_left_as_time_goes_by(place, first, second):
    """Of a file that ended, exactly as much less, down to nothing; of one still written, never more."""
    start = place["ended"] or place["made"]
    early, late = start + timedelta(seconds=min(first, second)), start + timedelta(seconds=max(first, second))
    before, after = forecast(now=early, **place), forecast(now=late, **place)
    if before.seconds_left is None or after.seconds_left is None:
        assert place["expiry"].seconds is None
        return
    assert after.seconds_left <= before.seconds_left
    if place["ended"] is not None:
        assert before.expires_at == after.expires_at == place["ended"] + timedelta(seconds=place["expiry"].seconds)
        assert after.seconds_left == max(0.0, before.seconds_left - (late - early).total_seconds())


@given(places(), st.integers(-(10**6), 10**7))
def test_no_forecast_is_negative(place, seconds):
    """Also where a clock was set back."""
    one = forecast(now=place["made"] + timedelta(seconds=seconds), **place)
    figures = (
        one.seconds_left,
        one.pending_bytes,
        one.catch_up_seconds,
        one.room_bytes,
        one.room_seconds,
        one.shortest,
    )
    assert all(value is None or value >= 0 for value in figures)


@given(places(), SECONDS, SECONDS)
def test_a_longer_retention_never_leaves_less(place, seconds, more):
    """And a larger size limit leaves no less room."""
    now = place["made"] + timedelta(seconds=seconds)
    expiry = BinlogExpiry(float(seconds), 10**9)
    less = forecast(now=now, **{**place, "expiry": expiry})
    longer = forecast(now=now, **{**place, "expiry": BinlogExpiry(float(seconds + more), 10**9 + more)})
    assert longer.seconds_left >= less.seconds_left
    assert longer.room_bytes >= less.room_bytes


@given(places(), SECONDS)
def test_a_server_that_purges_nothing_leaves_all_time(place, seconds):
    """No end and no warning, however long catching up takes."""
    one = forecast(now=place["made"] + timedelta(seconds=seconds), **{**place, "expiry": BinlogExpiry(None)})
    assert (one.expires_at, one.seconds_left, one.room_bytes, one.shortest, one.purged) == (None,) * 4 + (False,)
    assert not one.is_short(timedelta(hours=10**6))


@given(places(), SECONDS)
def test_unknown_facts_give_no_forecast(place, seconds):
    """Neither a server that hides its retention nor a file whose end nobody knows gets a time."""
    now = place["made"] + timedelta(seconds=seconds)
    hidden = forecast(now=now, **{**place, "expiry": replace(place["expiry"], unknown="hidden")})
    assert (hidden.expires_at, hidden.seconds_left, hidden.unknown) == (None, None, "hidden")


@given(places(), SECONDS)
def test_a_purged_file_leaves_no_time(place, seconds):
    """Whatever the server would keep now."""
    purged = {**place, "position": Position("binlog.999996", 4)}
    one = forecast(now=place["made"] + timedelta(seconds=seconds), **purged)
    assert (one.purged, one.seconds_left) == (True, 0.0)
    assert one.is_short(timedelta(hours=0))


@given(places(), SECONDS)
def test_the_size_limit_takes_a_file_when_it_and_what_follows_fill_it(place, seconds):
    """The files before it go first; a file for which there is no room is due now."""
    one = forecast(now=place["made"] + timedelta(seconds=seconds), **place)
    limit = place["expiry"].total_bytes
    if limit is None:
        assert (one.room_bytes, one.room_seconds) == (None, None)
        return
    names = [name for name, _ in place["files"]]
    held = sum(size for _, size in place["files"][names.index(place["position"].file) :])
    assert one.room_bytes == max(0, limit - held)
    if one.room_bytes == 0:
        assert (one.room_seconds, one.shortest, one.is_short(timedelta(hours=1))) == (0, 0, True)
    elif seconds > 0:
        assert one.room_seconds > 0
