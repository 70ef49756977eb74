"""Large objects as Python file objects: written in parts, read in ranges, in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from cdc_lib.errors import StoreError

if TYPE_CHECKING:
    from typing_extensions import Buffer

PART_BYTES = 16 << 20
"""Bytes of a part, and maximum bytes of a range request."""

MOST_PARTS = 10_000
"""Maximum parts of one S3 object (Amazon S3 user guide, "multipart upload limits")."""


READ_AHEAD = 256 << 10
"""Bytes that a small read asks for, so that a Parquet footer is one request."""


class Upload(Protocol):
    """An upload of one object, in parts or in one request."""

    def put_whole(self, data: bytes) -> None:
        """Write the object with one request."""
        ...

    def put_part(self, data: bytes) -> None:
        """Send the next part; the first one begins the upload."""
        ...

    def complete(self) -> None:
        """Complete the multipart upload."""
        ...

    def abort(self) -> None:
        """Abort the multipart upload, if it began."""
        ...


class PartWriter(io.RawIOBase):
    """A file for writing that sends each full part.

    Closing it does not complete the object; :meth:`finish` does.

    Args:
        upload: takes the parts.
        part_bytes: size of a part; S3 requires at least 5 MiB (the same page).
    """

    def __init__(self, upload: Upload, part_bytes: int = PART_BYTES) -> None:
        self._upload = upload
        self._part_bytes = part_bytes
        self._buffer = bytearray()
        self._parts = 0
        self._written = 0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._written

    def write(self, data: Buffer, /) -> int:
        """Take all of the data.

        Raises:
            StoreError: the object has more parts than S3 allows.
            StoreUnavailable: a part could not be sent.
        """
        if self.closed:
            raise ValueError("write to a closed file")
        with memoryview(data) as view, view.cast("B") as octets:
            size = len(octets)
            for start in range(0, size, self._part_bytes):
                self._buffer += octets[start : start + self._part_bytes]
                self._send_full_part()
        self._written += size
        return size

    def finish(self) -> None:
        """Send the rest and complete the object."""
        if self._parts == 0:
            self._upload.put_whole(bytes(self._buffer))
            return
        if self._buffer:
            self._send(bytes(self._buffer))
        self._upload.complete()

    def _send_full_part(self) -> None:
        if len(self._buffer) >= self._part_bytes:
            part = bytes(memoryview(self._buffer)[: self._part_bytes])
            del self._buffer[: self._part_bytes]
            self._send(part)

    def _send(self, part: bytes) -> None:
        if self._parts == MOST_PARTS:
            raise StoreError(
                f"an object has more than {MOST_PARTS} parts of {self._part_bytes} bytes",
                hint="Lower drain.max_window_bytes.",
            )
        self._upload.put_part(part)
        self._parts += 1


@contextmanager
def completed(upload: Upload) -> Iterator[BinaryIO]:
    """Give a file whose object appears when the block ends without an error; else the upload is aborted."""
    writer = PartWriter(upload)
    try:
        yield cast("BinaryIO", writer)
        writer.finish()
    except BaseException:
        upload.abort()
        raise


def read_by_ranges(size: int, fetch: Callable[[int, int], bytes]) -> BinaryIO:
    """Return a file for reading; arguments as of :class:`RangeReader`."""
    return cast("BinaryIO", io.BufferedReader(RangeReader(size, fetch), READ_AHEAD))


class RangeReader(io.RawIOBase):
    """A file for reading by range requests; wrap it in a BufferedReader.

    Args:
        size: bytes of the object.
        fetch: returns the bytes from a first offset (inclusive) to a second one (exclusive).
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._fetch = fetch
        self._at = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset; the next read makes the request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, target: Buffer, /) -> int:
        """Fill the target from one range; 0 at the end."""
        with memoryview(target) as view, view.cast("B") as octets:
            data = self._next(len(octets))
            octets[: len(data)] = data
            return len(data)

    def readall(self) -> bytes:
        """Return the rest; the base class would request 8 KiB at a time."""
        return b"".join(iter(lambda: self._next(PART_BYTES), b""))

    def _next(self, most: int) -> bytes:
        stop = min(self._size, self._at + most, self._at + PART_BYTES)
        if stop <= self._at:
            return b""
        data = self._fetch(self._at, stop)
        self._at += len(data)
        return data
