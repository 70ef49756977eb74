"""Many writers at once, in threads and in processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from cdc_lib.errors import CursorMoved
from cdc_lib.ports import CursorStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore

T = TypeVar("T")
WRITERS = 16
PROCESSES = multiprocessing.get_context("forkserver")
"""Makes a process as a copy of one that has imported this module: a new one would take a CPU second for its imports."""
PROCESSES.set_forkserver_preload(["pytest", __name__])


def at_once(work: Callable[[int], T], writers: int = WRITERS) -> list[T]:
    """Run a function in many threads that start together, and return their results."""
    gate = threading.Barrier(writers)

    def wait_and_work(number: int) -> T:
        gate.wait(30)
        return work(number)

    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(wait_and_work, range(writers)))


def create_local(root: Path, key: str, number: int) -> bool:
    return LocalStore(root).put_if_absent(key, f"writer {number}".encode())


def write_and_wait(root, ready):
    with LocalStore(root).open_write("shop/big") as file:
        file.write(os.urandom(3 << 20))
        ready.set()
        signal.pause()


def lock_and_stop(root):
    """Stop as SIGSTOP does while the lock of ``shop/small`` is held."""
    with LocalStore(root)._locked("shop/small"):
        os.kill(os.getpid(), signal.SIGSTOP)


def swap_local(root: Path, number: int) -> bool:
    return swaps(ObjectCursorStore(LocalStore(root)), number)


def swaps(cursors: CursorStore, number: int, consumer: str = "drain") -> bool:
    """Load a cursor of ``shop`` and swap it; returns whether this writer won."""
    old = cursors.load("shop", consumer)
    assert old is not None
    try:
        cursors.swap(old, old)
    except CursorMoved:
        return False
    return True


def in_processes(work: Callable[..., bool], rounds: list[tuple[Any, ...]], writers: int = WRITERS) -> list[list[bool]]:
    """Run a function in many processes that start each round together; returns the results by round."""
    gate, results = PROCESSES.Barrier(writers), PROCESSES.Queue()
    processes = [PROCESSES.Process(target=_rounds, args=(work, rounds, n, gate, results)) for n in range(writers)]
    for process in processes:
        process.start()
    try:
        given = [results.get(timeout=300) for _ in processes]
    finally:
        for process in processes:
            process.join(1)
            process.kill()
            process.join()
    return [list(each) for each in zip(*given, strict=True)]


def _rounds(work: Any, rounds: list[tuple[Any, ...]], number: int, gate: Any, results: Any) -> None:
    outcomes = []
    for arguments in rounds:
        gate.wait(300)
        outcomes.append(work(*arguments, number))
        gate.wait(300)
    results.put(outcomes)
