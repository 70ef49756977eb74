"""Laws of sources that are watched: every change gets its run, and a source without changes gets almost none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from cdc_lib.model.position import Position
from cdc_lib.status.run_requests import AT_LEAST, RECHECK, RETRY_AFTER, BinlogEnd, RunRequests, SourceProgress

HERE = ("db.example", 3306)
INTERVAL = 10.0
LONGEST = 900.0
HOUR = 3600.0

SECONDS = st.floats(0, LONGEST)
WRITES = st.lists(st.floats(0, 2 * HOUR), max_size=12).map(sorted)


@dataclass
class Watched:
    """A source and an Airflow that makes one run at a time, and at most one more for all requests meanwhile.

    Args:
        writes: when the source commits, in seconds.
        runs: seconds that each run takes, and whether it succeeds; further runs take no time and succeed.
        unreachable: between which seconds the server does not answer.
    """

    writes: list[float]
    runs: list[tuple[float, bool]]
    unreachable: tuple[float, float] = (0, 0)
    now: float = 0
    end: int = 4
    cursor: int | None = None
    planned: int | None = None
    active: tuple[float, bool] | None = None
    requested: bool = False
    requests: list[float] = field(default_factory=list)
    hourly: list[float] = field(default_factory=list)
    run_ends: list[float] = field(default_factory=list)
    reads: int = 0
    look: RunRequests = field(default_factory=RunRequests)

    def go_on(self, until: float, each: Callable[[], None] = lambda: None) -> None:
        """Let the time go by to ``until``."""
        while self.now < until:
            self._step()
            each()
            self.now += INTERVAL

    @property
    def is_even(self) -> bool:
        """Whether the cursor is at the end of the binlog."""
        return self.cursor == self.end

    @property
    def is_reachable(self) -> bool:
        """Whether the server answers."""
        return not self.unreachable[0] <= self.now < self.unreachable[1]

    def _step(self) -> None:
        while self.writes and self.writes[0] <= self.now:
            self.writes.pop(0)
            self.end += 1
        if self.active is not None and self.active[0] <= self.now:
            self._ends()
        if self.requested and self.active is None:
            self._begins()
        found = BinlogEnd(_at(self.end)) if self.is_reachable else BinlogEnd(None, "no route")
        if (why := self.look.reason({HERE: found}, self._progress, self.now)) is not None:
            self.requested = True
            self.requests.append(self.now)
            self.hourly += [self.now] * ("hour" in why)

    def _begins(self) -> None:
        self.requested = False
        seconds, succeeds = self.runs.pop(0) if self.runs else (0.0, True)
        self.active = (self.now + seconds, succeeds and self.is_reachable)
        if self.is_reachable and self.planned is None and self.cursor != self.end:
            self.planned = self.end

    def _ends(self) -> None:
        assert self.active is not None
        if self.active[1] and self.planned is not None:
            self.cursor, self.planned = self.planned, None
        self.active = None
        self.run_ends.append(self.now)

    def _progress(self) -> SourceProgress:
        self.reads += 1
        return SourceProgress(
            HERE, _at(self.cursor) if self.cursor is not None else None, waiting=self.planned is not None
        )


def _at(offset: int) -> Position:
    return Position("binlog.000001", offset)


@given(writes=WRITES, runs=st.lists(st.tuples(SECONDS, st.booleans()), max_size=5))
@example(writes=[], runs=[(0, True), (0, True)])
@example(writes=[100, 101, 500], runs=[(30, True), (600, True), (0, True)])
def test_every_change_is_in_the_lake_after_some_time(writes, runs):
    """Also those that are committed while a run is active, and after runs that fail."""
    last = writes[-1] if writes else 0.0
    source = Watched(list(writes), list(runs))
    source.go_on(last + (len(runs) + 2) * (LONGEST + RETRY_AFTER + 2 * INTERVAL))
    assert source.is_even


@given(hours=st.integers(1, 12), seconds=SECONDS)
def test_a_source_without_changes_gets_a_run_an_hour(hours, seconds):
    """And its cursors are read once a minute, although its server is asked every ten seconds."""
    source = Watched([], [(seconds, True)])
    source.go_on(LONGEST + RETRY_AFTER + 3 * INTERVAL)
    assert source.is_even
    requests, reads = len(source.requests), source.reads
    source.go_on(source.now + hours * HOUR)
    assert hours - 1 <= len(source.requests) - requests <= hours + 1
    assert source.reads - reads <= hours * (HOUR / RECHECK + 2 * HOUR / AT_LEAST) + 1


@given(hours=st.integers(1, 5))
def test_a_server_that_does_not_answer_gets_a_run_every_five_minutes(hours):
    """The run fails, and says why where people look; further ones would only hold workers."""
    source = Watched([], [], unreachable=(0, math.inf))
    source.go_on(hours * HOUR)
    assert hours * HOUR / RETRY_AFTER - 1 <= len(source.requests) <= hours * HOUR / RETRY_AFTER + 1


@given(writes=WRITES, seconds=st.lists(SECONDS, max_size=8))
@example(writes=[3605.0], seconds=[0.0, 900.0])
def test_nothing_is_requested_while_the_requested_run_is_active(writes, seconds):
    """A second request is one more run after it: for nothing, if the first one reads all there is.

    The hourly run is the exception. Whether it planned before or after a change that comes then is not known.
    """
    source = Watched(list(writes), [(each, True) for each in seconds])
    source.go_on(3 * HOUR)
    for before, after in zip(source.requests, source.requests[1:], strict=False):
        ended = [end for end in source.run_ends if before < end <= after]
        assert ended or after - before >= RETRY_AFTER or before in source.hourly


@given(writes=WRITES, begin=st.floats(0, HOUR), length=st.floats(0, HOUR))
@example(writes=[3611.0], begin=0.0, length=0.0)
def test_a_server_that_answers_again_is_read_at_once(writes, begin, length):
    """The retries of the runs that failed are not waited for: the state has changed."""
    source = Watched(list(writes), [], unreachable=(begin, begin + length))
    even: list[tuple[float, bool]] = []
    source.go_on(3 * HOUR, lambda: even.append((source.now, source.is_even)))
    late = [at for at, is_even in even if not is_even and at > begin + length]
    pending = [at for at in late if not any(at - 5 * INTERVAL <= write <= at for write in writes)]
    assert all(at <= begin + length + 5 * INTERVAL for at in pending)


def test_a_source_without_changes_gets_a_run_when_a_day_has_ended():
    """Only a run can say that the lake has all of the day. The request is repeated like any other."""
    look, ends, state = RunRequests(), {HERE: BinlogEnd(_at(4))}, SourceProgress(HERE, _at(4))
    assert look.reason(ends, lambda: state, 0.0) == "no run was requested for an hour"
    assert look.reason(ends, lambda: state, RECHECK) is None
    ended = replace(state, day_ended=True)
    assert look.reason(ends, lambda: ended, 2 * RECHECK) == "a day has ended, and is not announced"
    assert look.reason(ends, lambda: ended, 3 * RECHECK) is None
    assert look.reason(ends, lambda: ended, 2 * RECHECK + RETRY_AFTER) == "a day has ended, and is not announced"
    assert look.reason(ends, lambda: state, 2 * RECHECK + 2 * RETRY_AFTER) is None
