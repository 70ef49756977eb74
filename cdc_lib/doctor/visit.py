"""Many sources are checked one beside the other, and those that do not answer share one deadline."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cdc_lib.config import SourceConfig
from cdc_lib.doctor.examine import PATIENCE, PATIENCE_OF_ONE, Check, shared
from cdc_lib.doctor.java_check import check_java
from cdc_lib.doctor.waiting_clock import waited

ALTOGETHER = 4.5
"""Time limit for the checks of all sources if one of them does not answer, in seconds of :func:`cdc_lib.doctor.waiting_clock.waited`."""

_SHORTEST = 1.0
"""A source is not checked in less time than this, in seconds."""

_LOOK = 0.2
"""How often a source that waits looks at the clock, in seconds."""

_AT_ONCE, _OF_ONE_SERVER = 16, 8
"""How many sources are checked at once, and how many of them may be of the same server."""


@dataclass(slots=True)
class Visit:
    """What the checks of many sources share; safe to share between threads.

    The deadline is counted from the begin of the source that has been checked for the longest time: so any number of sources that
    answer is checked. The first source that does not answer fixes the deadline, and no source begins after it.

    Args:
        sources: how many there are; one alone has more time.
        java: the check of Java, which runs once.
    """

    sources: int
    java: Check = field(default_factory=lambda: shared(check_java))
    _running: list[_Turn] = field(default_factory=list)
    _silent_since: float | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def turn(self, config: SourceConfig) -> Iterator[float | None]:
        """Wait for the turn of a source; gives the time limit for its checks in seconds, None if there is no time left."""
        turn = self._begun(config.addresses[0])
        if turn is None:
            yield None
            return
        try:
            yield turn.patience
        finally:
            self._ended(turn)

    def _begun(self, server: tuple[str, int]) -> _Turn | None:
        with self._changed:
            while True:
                now = waited()
                since = min((one.began for one in self._running), default=now)
                since = since if self._silent_since is None else self._silent_since
                left = since + (ALTOGETHER if self.sources > 1 else PATIENCE_OF_ONE) - now
                if left < _SHORTEST and self._silent_since is not None:
                    return None
                if left >= _SHORTEST and self._has_free_slot(server):
                    turn = _Turn(server, now, min(PATIENCE, left) if self.sources > 1 else PATIENCE_OF_ONE)
                    self._running.append(turn)
                    return turn
                self._changed.wait(_LOOK)

    def _has_free_slot(self, server: tuple[str, int]) -> bool:
        same = sum(one.server == server for one in self._running)
        return same < _OF_ONE_SERVER and len(self._running) < _AT_ONCE

    def _ended(self, turn: _Turn) -> None:
        with self._changed:
            self._running.remove(turn)
            if waited() - turn.began >= turn.patience:
                self._silent_since = min(turn.began, self._silent_since or turn.began)
            self._changed.notify_all()


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """A source that is checked now: its server, when it began, and its time limit."""

    server: tuple[str, int]
    began: float
    patience: float
