"""The lag is 0 only where the lake is known to have everything, and grows while nobody can look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.status.lag import LakeProgress, lag_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TIMES = st.one_of(st.none(), st.integers(0, 10**6).map(lambda seconds: NOW - timedelta(seconds=seconds)))
KNOWN = st.builds(
    LakeProgress,
    published=st.booleans(),
    waiting=st.booleans(),
    at_binlog_end=st.sampled_from([None, False, True]),
    oldest=TIMES,
    merged=TIMES,
    complete=TIMES,
    began=TIMES,
)


@given(KNOWN)
def test_the_lag_is_unknown_before_the_first_cut_and_0_only_where_nothing_waits(known):
    """An empty lake is never up to date."""
    lag = lag_of(known, NOW)
    if not known.published:
        assert lag is None
    elif known.at_binlog_end and not known.waiting:
        assert lag == 0
    elif any((known.oldest, known.merged, known.complete, known.began)):
        assert lag is not None


@given(KNOWN.filter(lambda one: one.published and not (one.at_binlog_end and not one.waiting)), st.integers(1, 10**5))
def test_while_nothing_moves_the_lag_grows_with_the_clock(known, seconds):
    """So that an alert goes off when the source is dead, unreachable or stuck."""
    before, after = lag_of(known, NOW), lag_of(known, NOW + timedelta(seconds=seconds))
    if before is not None:
        assert after == before + seconds


@given(KNOWN, st.integers(0, 1000))
def test_what_waits_is_never_older_than_the_last_moment_at_which_nothing_did(known, seconds):
    """An idle source whose server dies lags since it was last asked, not since its last change."""
    complete = NOW - timedelta(seconds=seconds)
    lag = lag_of(LakeProgress(True, known.waiting, None, None, known.merged, complete, known.began), NOW)
    assert lag is not None
    assert lag <= seconds
