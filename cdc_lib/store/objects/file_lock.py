"""Locks of files, for processes of one machine or of a shared file system."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdc_lib.errors import StoreUnavailable

_PAUSES = (0.001, 0.01, 0.05, 0.2)
"""Seconds between two tries, the last of them again and again: a lock is held for milliseconds."""
FULL_DISK = {errno.ENOSPC, errno.EDQUOT}
_BYTES = 320
"""Of a lock file: the holder's process and host. A file of one size needs no space once the disk is full."""


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of a file, which is created. It is released at the end, and when the process dies.

    Args:
        path: of the file, in a folder that exists.
        seconds: how long to wait for another process.

    Raises:
        StoreUnavailable: another process holds it all that time, perhaps because it was stopped.
    """
    with io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+") as file:
        _take(file, path, seconds)
        _sign(file)
        yield


def _take(file: io.FileIO, path: Path, seconds: float) -> None:
    end, tries = time.monotonic() + seconds, 0
    while not _is_taken(file):
        if time.monotonic() > end:
            raise _held(path, os.pread(file.fileno(), _BYTES, 0).decode("utf-8", "replace").split(), seconds)
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def _is_taken(file: io.FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: io.FileIO) -> None:
    """Write who holds the lock. On a full disk nobody is named, and the lock holds all the same."""
    try:
        os.pwrite(file.fileno(), f"{os.getpid()} {socket.gethostname()}".encode().ljust(_BYTES), 0)
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise


def _held(path: Path, holder: list[str], seconds: float) -> StoreUnavailable:
    pid, host = holder if len(holder) == 2 else (None, None)
    who, process = (f"process {pid} on {host}", pid) if pid else ("another process", f"PID, which fuser {path} shows,")
    return StoreUnavailable(
        f"{who} holds the lock {path} for more than {seconds:.0f} seconds",
        hint=f"If it was stopped, kill -CONT {process} lets it go on, and kill -KILL {process} ends it; either releases the lock. The "
        "task can be tried again.",
        pid=pid,
        host=host,
    )
