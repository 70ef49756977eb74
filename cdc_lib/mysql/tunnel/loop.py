"""One event loop in a thread of this process, for the SSH connections that its sessions share."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundLoop:
    """A loop whose thread starts with its first work. A forked child begins with a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._of_parents: list[object] = []

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run work in the loop and wait for its result; its exception goes to the caller."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:  # also a signal's: a task of Airflow that times out
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    @property
    def runs(self) -> bool:
        """Whether the thread was started in this process."""
        return self._loop is not None

    def forget(self) -> None:
        """Start empty in a forked child, which has no copy of the thread.

        What the parent's loop holds stays referenced: collecting it would close descriptors and warn.
        """
        self._of_parents.append(self._loop)
        self._lock = threading.Lock()
        self._loop = self._thread = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="tunnels", daemon=True)
                self._thread.start()
            return self._loop


def at_end_and_fork(end: Any, in_child: Any) -> None:
    """Call ``end`` before this process ends, and ``in_child`` in each forked child."""
    atexit.register(end)
    os.register_at_fork(after_in_child=in_child)
