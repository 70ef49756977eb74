"""Files of a lake table as Python files, through Iceberg's own FileIO: the same storage, keys and settings as Iceberg has."""

from __future__ import annotations

import io
from typing import Any


class InputStream(io.RawIOBase):
    """A file of a lake table, read where it is asked for.

    Args:
        file: Iceberg's InputFile.
        size: in bytes.
    """

    def __init__(self, file: Any, size: int) -> None:
        self._size = size
        self._stream = file.newStream()
        self._at = self._java_at = 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or all."""
        left = max(self._size - self._at, 0)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        if self._at != self._java_at:
            self._stream.seek(self._at)
        data = bytes(self._stream.readNBytes(wanted))
        self._at = self._java_at = self._at + len(data)
        return data

    def close(self) -> None:
        """Close Java's stream as well."""
        if not self.closed:
            self._stream.close()
        super().close()


def read_range(file: Any, offset: int, size: int) -> bytes:
    """Return a part of a file.

    Args:
        file: Iceberg's InputFile.
        offset: where it begins.
        size: in bytes.
    """
    with InputStream(file, offset + size) as stream:
        stream.seek(offset)
        return stream.read()


def write_file(file: Any, data: bytes) -> None:
    """Write a whole file.

    Args:
        file: Iceberg's OutputFile.
        data: its bytes.
    """
    stream = file.create()
    stream.write(data)
    stream.close()
