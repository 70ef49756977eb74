"""Reports the progress of parallel tables every few seconds; shorter work reports nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from cdc_lib.model.pace import EVERY, Pace

_SHOWN = 4


@dataclass(slots=True)
class Heartbeat:
    """Reports the number of finished tables, and the running ones with their times.

    Args:
        done: what is done with the tables: "merged".
        total: number of tables.
        say: receives a line.
        every: seconds between two lines.
    """

    done: str
    total: int
    say: Callable[[str], None]
    every: float = EVERY
    _began: float = field(default_factory=time.monotonic)
    _finished: int = 0
    _running: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start reporting."""
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reporting."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def on(self, table: str) -> Iterator[None]:
        """Count a table as running in the block."""
        with self._lock:
            self._running[table] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._running[table]
                self._finished += 1

    def line(self, now: float) -> str:
        """Return the progress line."""
        with self._lock:
            running, finished = dict(self._running), self._finished
        pace = Pace(self.done, "table", self.total, self._began, finished)
        shown = [f"{table} ({now - since:.0f} s)" for table, since in list(running.items())[:_SHOWN]]
        more = f" and {len(running) - _SHOWN} more" if len(running) > _SHOWN else ""
        return f"{pace.line(now)}; now: {', '.join(shown)}{more}" if shown else pace.line(now)

    def _beat(self) -> None:
        while not self._end.wait(self.every):
            self.say(self.line(time.monotonic()))
