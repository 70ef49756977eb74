"""A file that computes its size and digest while it is written."""

from __future__ import annotations

import hashlib
import io
from typing import Any, BinaryIO


class HashedFile(io.RawIOBase):
    """Counts and hashes the bytes that are written to a file.

    Args:
        file: the file; it is no longer written to once ``abandoned`` is set.
    """

    def __init__(self, file: BinaryIO) -> None:
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
