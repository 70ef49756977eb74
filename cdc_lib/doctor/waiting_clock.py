"""A clock that stops while this process computes or waits for a core: on a busy machine both take long, and are nobody's silence."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

_LOOK = 0.05
"""Least seconds between two looks at the threads."""


class WaitingClock:
    """Counts the seconds in which no thread of this process computed or waited for a core; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked, self._work, self._waited = time.monotonic(), _work(), 0.0

    def seconds(self) -> float:
        """Return the seconds so far. Linux counts the wait for a core when it ends, so this may go back by such a wait."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= _LOOK:
                work = _work()
                worked = max((work[one] - self._work.get(one, 0.0) for one in work), default=0.0)
                self._waited += now - self._looked - worked
                self._looked, self._work = now, work
            return self._waited


def _work() -> dict[str, float]:
    """Return the seconds that each thread computed or waited for a core, by its id; nothing where the system does not count them."""
    found = {}
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            computed, waited, _ = file.read_text().split()
            found[file.parent.name] = (int(computed) + int(waited)) / 1e9
    return found


waited = WaitingClock().seconds
"""The clock of this process."""
