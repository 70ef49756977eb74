"""The buffer for inflated row events.

A record points to its row images in one buffer. As soon as the stream has compressed events, the pending row images are copied
here, inflated ones are appended, and so on in the order of the stream.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from cdc_lib.binlog.bytes.integers import copy
from cdc_lib.binlog.framing.packets import BODY, END, PACKED, TYPE
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.rows.mariadb_compressed import end_of_bitmaps, inflate, inflated_size


class BrokenRows(Exception):
    """The compressed rows of a record cannot be inflated; ``args`` are the record's index and the fault."""


class InflateBuffer:
    """Bytes in use are ``data[:fill]``.

    Args:
        size: bytes that it holds before its content must be decoded; a longer event makes it grow.
        most: maximum size, more than LONGEST_EVENT: cells have 32-bit offsets.
    """

    def __init__(self, size: int = 8 << 20, most: int = (1 << 31) - 1) -> None:
        """Allocate nothing yet."""
        self._most = most
        self.data: Bytes = np.empty(0, np.uint8)
        self.fill = 0
        self._size = size

    def room(self, needed: int) -> int:
        """Return the number of free bytes, at least ``needed`` if the buffer is empty."""
        if self.data.shape[0] < self._size:
            self._grow(self._size)
        if self.fill == 0 and needed > self.data.shape[0]:
            self._grow(needed)
        return int(self.data.shape[0]) - self.fill

    def keep_from(self, start: int) -> None:
        """Move the bytes from ``start`` on to the front, and discard the others."""
        rest = self.data[start : self.fill].copy()
        self.fill = rest.shape[0]
        self.data[: self.fill] = rest

    def double(self) -> None:
        """Double the size for a longer event; growth follows the bytes that arrive, not the announced size."""
        self._grow(min(2 * self.data.shape[0], self._most))

    def take(self, source: Bytes, records: npt.NDArray[np.int64]) -> int:
        """Copy the rows of records here: as many records as fit, and at least one into an empty buffer.

        Args:
            source: the buffer that the records point to.
            records: changed in place to point to this buffer.

        Returns:
            How many records were copied.

        Raises:
            BrokenRows: compressed rows do not follow the format.
        """
        plan = np.empty((records.shape[0], 3), np.int64)
        count, wrong = _plan(source, records, self.room(0), self.fill == 0, plan)
        if wrong >= 0:
            raise BrokenRows(wrong, "their compressed part does not follow the format, or is of 2 GiB or more")
        if count == 0:
            return 0
        self.room(int(plan[:count, 0].sum()))
        packed = np.flatnonzero(records[:count, PACKED])
        ends = records[packed, END]
        _copy_rows(source, records, count, plan, self.data, self.fill)
        for i, end in zip(packed.tolist(), ends.tolist(), strict=True):
            size, start = int(plan[i, 1]), int(plan[i, 2])
            try:
                found = inflate(source, start, end, size)
            except ValueError as error:
                raise BrokenRows(i, str(error)) from error
            stop = int(records[i, END])
            self.data[stop - size : stop] = np.frombuffer(found, np.uint8)
        self.fill += int(plan[:count, 0].sum())
        return int(count)

    def _grow(self, size: int) -> None:
        wider = np.empty(size, np.uint8)
        wider[: self.fill] = self.data[: self.fill]
        self.data = wider


@njit(cache=True, nogil=True)
def _plan(b, records, room, empty, plan):
    """Fill ``plan`` with size, inflated part and start of the zlib data of each record that fits into ``room``.

    Returns how many fit (the first one always does into an empty buffer) and the record at fault or -1.
    """
    used = np.int64(0)
    for i in range(records.shape[0]):
        body, end = records[i, BODY], records[i, END]
        plan[i, 0] = end - body
        if records[i, PACKED]:
            front = end_of_bitmaps(b, body, end, records[i, TYPE])
            if front < 0:
                return np.int64(i), np.int64(i)
            size, start = inflated_size(b, front, end)
            if size < 0:
                return np.int64(i), np.int64(i)
            plan[i, 0] = front - body + size
            plan[i, 1] = size
            plan[i, 2] = start
        used += plan[i, 0]
        if used > room and not (empty and i == 0):
            return np.int64(i), np.int64(-1)
    return np.int64(records.shape[0]), np.int64(-1)


@njit(cache=True, nogil=True)
def _copy_rows(b, records, count, plan, target, at):
    """Copy the uncompressed bytes, and let the records point to ``target``."""
    for i in range(count):
        size = plan[i, 0] - (plan[i, 1] if records[i, PACKED] else 0)
        copy(b, records[i, BODY], target, at, size)
        records[i, BODY] = at
        records[i, END] = at + plan[i, 0]
        at += plan[i, 0]
