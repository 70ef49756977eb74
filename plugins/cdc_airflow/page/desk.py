"""Answers within a bounded time, also while a store gives no answer.

Reading goes on in threads; a request waits for it a moment, and is asked to come again when there is no answer by then. What was
read is good for some seconds, so that many readers of the page are one reader of the store. After that the old answer is given
while the new one is on its way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cdc_lib.errors import CdcError, StoreUnavailable

FRESH = 5.0
"""Seconds for which an answer is good."""

OLD = 60.0
"""Seconds after which an old answer is worse than waiting."""

MOMENT = 0.1
"""Seconds that a request waits for a newer answer while it has an old one."""

PATIENCE = 0.2
"""Seconds that it waits without one."""

SLOW = 5.0
"""Seconds of silence after which the page says that the store does not answer."""

THREADS = 8
"""Readers of one server: a server that gives no answer keeps readers of no other waiting."""

FOLDER = "file"
"""The server of stores in local folders."""

FOLDER_THREADS = 2
"""Readers of folders: they answer at once, and more would only wait for each other and hold up the answers."""

T = TypeVar("T")


class NoAnswer(Exception):
    """There is no answer yet.

    Args:
        seconds: for which somebody has been waiting.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The store has not answered for {seconds:.0f} s." if seconds > SLOW else "Reading the store …"
        )
        self.slow = seconds > SLOW


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """Something to be read.

    Args:
        key: names it.
        place: the store that is asked: while it gives no answer, nobody else asks it.
        server: which has that store, and perhaps others.
        read: reads it, and raises a CdcError where it cannot.
    """

    key: Hashable
    place: Hashable
    server: Hashable
    read: Callable[[], T]


@dataclass(frozen=True, slots=True)
class _Asked:
    future: Future[None]
    since: float


@dataclass(frozen=True, slots=True)
class _Kept:
    outcome: Any
    at: float


class Desk:
    """Keeps answers, and asks each question once at a time."""

    def __init__(self) -> None:
        self._pools: dict[Hashable, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()
        self._kept: dict[Hashable, _Kept] = {}
        self._asked: dict[Hashable, _Asked] = {}
        self._down: dict[Hashable, _Kept] = {}

    def ask(self, question: Question[T]) -> T:
        """Return the answer to one question.

        Raises:
            NoAnswer: there is none yet; it is still being read.
            CdcError: it cannot be read.
        """
        outcome: T | CdcError | NoAnswer = self.ask_all([question])[question.key]
        if isinstance(outcome, NoAnswer):
            raise outcome
        if isinstance(outcome, CdcError):
            raise outcome.with_traceback(None)
        return outcome

    def ask_all(self, questions: list[Question[T]]) -> Mapping[Hashable, T | CdcError | NoAnswer]:
        """Return the answers to many questions, by key, an error where there is none."""
        futures = [future for one in questions if (future := self._begin(one)) is not None]
        if futures:
            lacking = any(self._of(one.key, OLD) is None for one in questions)
            wait(futures, PATIENCE if lacking else MOMENT)
        found = {one.key: self._of(one.key, OLD) for one in questions}
        return {key: self._silence(key) if outcome is None else outcome for key, outcome in found.items()}

    def _silence(self, key: Hashable) -> NoAnswer:
        with self._lock:
            running = self._asked.get(key)
        return NoAnswer(time.monotonic() - running.since if running is not None else 0.0)

    def _of(self, key: Hashable, age: float) -> Any:
        kept = self._kept.get(key)
        return kept.outcome if kept is not None and time.monotonic() - kept.at <= age else None

    def _begin(self, question: Question[Any]) -> Future[Any] | None:
        """Return the reading of an answer that is not fresh; None when it is."""
        with self._lock:
            if self._of(question.key, FRESH) is not None:
                return None
            running = self._asked.get(question.key)
            if running is None:
                running = _Asked(self._pool(question.server).submit(self._read, question), time.monotonic())
                self._asked[question.key] = running
            return running.future

    def _pool(self, server: Hashable) -> ThreadPoolExecutor:
        """Return the readers of a server; they are few, and wait when nothing is asked."""
        if server not in self._pools:
            threads = FOLDER_THREADS if server == FOLDER else THREADS
            self._pools[server] = ThreadPoolExecutor(threads, thread_name_prefix="cdc-page")
        return self._pools[server]

    def _read(self, question: Question[Any]) -> None:
        try:
            outcome, now = self._outcome(question), time.monotonic()
            with self._lock:  # what nobody asks for any more is forgotten
                kept = {key: one for key, one in self._kept.items() if now - one.at <= OLD}
                self._kept = {**kept, question.key: _Kept(outcome, now)}
        finally:
            with self._lock:
                self._asked.pop(question.key, None)

    def _outcome(self, question: Question[Any]) -> Any:
        down = self._down.get(question.place)
        if down is not None and time.monotonic() - down.at < FRESH:
            return down.outcome
        try:
            return question.read()
        except StoreUnavailable as error:
            self._down[question.place] = _Kept(error, time.monotonic())
            return error
        except CdcError as error:
            return error
