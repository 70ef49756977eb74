"""Files that are written once: one computes its size and digest, one is opened late."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

_HELD_BYTES = 1 << 20
"""Maximum bytes that a file holds in memory before it is opened."""


class Writable(Protocol):
    """Takes bytes."""

    def write(self, data: memoryview, /) -> object:
        """Write bytes."""
        ...


class LateFile:
    """Holds its first bytes in memory, and is opened when there are more.

    A window has a file for each table with rows, and all of them are written at the same time: thousands of small ones must not be
    open at once, and need not exist if the window is read again.

    Args:
        open_file: opens the file.
    """

    def __init__(self, open_file: Callable[[], BinaryIO]) -> None:
        """Start with no byte."""
        self._open_file = open_file
        self._file: BinaryIO | None = None
        self._held = bytearray()

    def write(self, data: memoryview, /) -> None:
        """Hold or write bytes."""
        if self._file is not None:
            self._file.write(data)
            return
        self._held += data
        if len(self._held) > _HELD_BYTES:
            self.open()

    def open(self) -> None:
        """Open the file and write what is held, unless this is done already."""
        if self._file is None:
            self._file = self._open_file()
            self._file.write(self._held)
            self._held = bytearray()


class HashedFile(io.RawIOBase):
    """Counts and hashes the bytes that are written to a file.

    Args:
        file: the file; it is no longer written to once ``abandoned`` is set.
    """

    def __init__(self, file: Writable) -> None:
        """Start with no byte."""
        super().__init__()
        self._file = file
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.abandoned = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes and return how many."""
        view = memoryview(data)
        self.size += view.nbytes
        if not self.abandoned:
            self.sha256.update(view)
            self._file.write(view)
        return view.nbytes

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.size
