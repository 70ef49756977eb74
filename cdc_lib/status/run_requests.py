"""Decides when a source that is watched instead of scheduled needs a run. Pure: it gets what others looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.waiting import is_idle

RETRY_AFTER = 300.0
"""Seconds until a run is requested again while the cursors are the same: the first one failed, or is still running."""

AT_LEAST = 3600.0
"""Maximum seconds between two requests: only a run detects, for example, a new table that cannot be read."""

RECHECK = 60.0
"""Seconds until the cursors of a source without changes are read again: somebody may have requested a snapshot."""

Address = tuple[str, int]
"""Host and port of a server."""


@dataclass(frozen=True, slots=True)
class BinlogEnd:
    """The answer of a server.

    Args:
        position: end of its binlog; None if it did not answer.
        error: why it did not.
    """

    position: Position | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The state of a source.

    Args:
        address: of the server that the drain cursor is on.
        position: of the drain cursor; None before the first plan.
        waiting: whether windows, snapshots or a merge wait or are in flight.
        day_ended: whether a day has ended, and is not known to be announced: a source without changes needs a run for it.
        error: why the source file or the cursors cannot be read.
    """

    address: Address
    position: Position | None = None
    waiting: bool = False
    day_ended: bool = False
    error: str = ""

    @classmethod
    def of(
        cls, address: Address, drain: Cursor | None, lake: Cursor | None, *, day_ended: bool = False
    ) -> SourceProgress:
        """Return it from the two cursors."""
        if drain is None or lake is None:
            return cls(address)
        return cls(address, drain.position, waiting=not is_idle(drain, lake), day_ended=day_ended)


@dataclass(frozen=True, slots=True)
class _Request:
    at: float
    state: SourceProgress
    is_unreachable: bool
    has_work: bool

    def covers(self, later: _Request) -> bool:
        """Return whether the run of this request may still do what a later one is for."""
        if later.at - self.at >= RETRY_AFTER or not self.has_work:
            return False
        return later.state.waiting or (self.state, self.is_unreachable) == (later.state, later.is_unreachable)


class RunRequests:
    """Decides after each look at the servers whether a run is requested.

    A request is not repeated while its run may be running: Airflow would start one more run after it. The hourly request of a
    source without work is no reason to wait: its run may have planned before the change that is seen now.
    """

    def __init__(self) -> None:
        self._requested: _Request | None = None
        self._idle: tuple[Mapping[Address, BinlogEnd], float] | None = None

    def reason(
        self, ends: Mapping[Address, BinlogEnd], progress: Callable[[], SourceProgress], now: float
    ) -> str | None:
        """Return why a run is requested now; None if it is not.

        Args:
            ends: the end of the binlog of each server of the source.
            progress: reads the state of the source; not called while nothing can have changed.
            now: seconds on a clock that is never set back.
        """
        overdue = self._requested is None or now - self._requested.at >= AT_LEAST
        if not overdue and self._idle is not None and self._idle[0] == ends and now - self._idle[1] < RECHECK:
            return None
        state = progress()
        end = ends.get(state.address)
        why = _why(state, end)
        self._idle = (ends, now) if why is None else None
        request = _Request(now, state, end is None or end.position is None, has_work=why is not None)
        if why is None and overdue:
            why = "no run was requested for an hour"
        if why is None or (self._requested is not None and self._requested.covers(request)):
            return None
        self._requested = request
        return why


def _why(state: SourceProgress, end: BinlogEnd | None) -> str | None:
    if state.error:
        return state.error
    if end is None:
        return f"the source file does not name {state.address[0]}:{state.address[1]} any more"
    if end.position is None:
        return f"the server does not answer: {end.error}"
    return _work(state, end.position)


def _work(state: SourceProgress, end: Position) -> str | None:
    if state.position is None:
        return "the source has no cursor yet"
    if state.waiting:
        return "windows, snapshots or a merge wait"
    if end != state.position:
        return f"the binlog ends at {end}, the drain cursor is at {state.position}"
    return "a day has ended, and is not announced" if state.day_ended else None
