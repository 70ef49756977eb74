"""Stops a process, as SIGSTOP does, while it holds a lock of a store in a folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_lib.store import layout
from cdc_lib.store.objects.local import LocalStore
from tests.chaos.points import Points

STOPPED = "drain: stopped with the lock of a manifest"


def stop_with_the_lock(store: LocalStore, points: Points) -> None:
    """Stop this process while it holds the lock of the next manifest that it writes."""
    locked = store._locked

    @contextmanager
    def stopping(key: str) -> Iterator[None]:
        with locked(key):
            if key.endswith(f"/{layout.MANIFEST}"):
                store._locked = locked  # type: ignore[method-assign]
                points.at(STOPPED)
                signal.raise_signal(signal.SIGSTOP)  # to this thread: another one would let it go on for a moment
            yield

    store._locked = stopping  # type: ignore[method-assign]
