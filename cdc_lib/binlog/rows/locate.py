"""Locates the cells of row images.

Body of a rows event after its post-header (table id 6, flags 2; version 2 adds a length-prefixed block of extra data): the
number of columns as a packed integer, a bitmap of the columns present (updates: a second one for the after image), then row
images: a bitmap of NULLs among the columns present and the values one after another (MySQL ``rows_event.h``).

All value encodings are of two shapes: a fixed number of bytes, or a length of 1 to 4 bytes (little-endian) and that many
bytes. The table map says which; this walk needs no more than that, and checks each step against the event's end.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import little, u16
from cdc_lib.binlog.framing.packets import BODY, END, TYPE

ALL_READ, GROUP_FULL, SPACE_FULL, BAD_LENGTH, BAD_COLUMNS, PARTIAL_IMAGE = range(6)
"""Why a walk ended."""

INSERT, UPDATE, DELETE, READ = range(4)
"""Codes of the ``_op`` column: c, u, d, r."""

WALK_ROWS = 16 * 253
"""Rows located at a time: their cells should stay in the processor's cache until they are decoded. Columns lie an odd number
of cache lines apart, because at a power of two the cells of one row would push each other out."""


def scratch_cells(columns: int, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Return room for start and length of cells, (columns, capacity) both."""
    return np.empty((columns, capacity), np.int32), np.empty((columns, capacity), np.int32)


def scratch_marks(capacity: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return room for op code, record and image index of rows."""
    return np.empty(capacity, np.uint8), np.empty(capacity, np.int64), np.empty(capacity, np.int64)


@njit(cache=True, nogil=True, inline="always")
def step_into(b, p, end, kind):
    """Return the number of columns of a row event, whose body starts at ``p``, and where its bitmaps start.

    Both are -1 when they lie outside of the event. Types 30 and up have extra data first, whose length counts itself; the
    number is one byte up to 250, else 0xFC and two bytes.
    """
    if kind >= 30:
        if p + 2 > end:
            return np.int64(-1), np.int64(-1)
        p += u16(b, p)
    if p + 1 > end or (b[p] == 0xFC and p + 3 > end):
        return np.int64(-1), np.int64(-1)
    if b[p] == 0xFC:
        return u16(b, p + 1), p + 3
    return np.int64(b[p]), p + 1


@njit(cache=True, nogil=True, inline="always")
def _image(b, p, end, prefix, width, columns, pos, length, r):
    """Locate the cells of one row image; returns the byte after it, or -1 when a length leaves the event."""
    nulls = p
    p += (columns + 7) >> 3
    if p > end:
        return -1
    for c in range(columns):
        if (b[nulls + (c >> 3)] >> (c & 7)) & 1:
            length[c, r] = -1
            pos[c, r] = 0
            continue
        k = prefix[c]
        if k == 0:
            size = width[c]
        else:
            if p + k > end:
                return -1
            size = little(b, p, k)
            p += k
        if size > end - p:
            return -1
        pos[c, r] = p
        length[c, r] = size
        p += size
    return p


@njit(cache=True, nogil=True, inline="always")
def same_key(b, keys, pos, length, r):
    """Whether the key cells of rows ``r`` and ``r + 1`` are equal byte for byte."""
    for i in range(keys.shape[0]):
        c = keys[i]
        n = length[c, r]
        if n != length[c, r + 1]:
            return False
        for j in range(n):
            if b[pos[c, r] + j] != b[pos[c, r + 1] + j]:
                return False
    return True


@njit(cache=True, nogil=True)
def locate(b, records, chosen, first, prefix, width, keys, group_rows, group_bytes, pos, length, op, event, image):
    """Locate every cell of the row events ``records[chosen[first:]]``, all of one layout.

    Args:
        b: bytes off the wire.
        records: of frame.scan.
        chosen: rows of ``records``.
        first: where in ``chosen`` to begin.
        prefix: per column, bytes of its length prefix; 0 for a fixed width.
        width: per column, bytes of a fixed width.
        keys: indexes of the key columns; with none, both images of an update are kept.
        group_rows: stop after the event that makes this many rows.
        group_bytes: stop after the event that makes this many bytes.
        pos: (columns, capacity) start of each cell in ``b``, to be filled.
        length: (columns, capacity) bytes of each cell, -1 for NULL, to be filled.
        op: code of each row, to be filled.
        event: row of ``records`` that each row comes from, to be filled.
        image: index of the row image in its event, to be filled.

    Returns:
        Why it ended, rows located, the next element of ``chosen`` (the faulty one after an error), bytes of the events.
    """
    columns = prefix.shape[0]
    capacity = op.shape[0]
    n = 0
    taken = 0
    for i in range(first, chosen.shape[0]):
        e = chosen[i]
        kind = records[e, TYPE]
        end = records[e, END]
        if kind == 39:
            return PARTIAL_IMAGE, n, i, taken
        bitmap = (columns + 7) >> 3
        update = kind == 24 or kind == 31
        count, p = step_into(b, records[e, BODY], end, kind)
        if count < 0:
            return BAD_LENGTH, n, i, taken
        if count != columns:
            return BAD_COLUMNS, n, i, taken
        bitmaps = 2 if update else 1
        if p + bitmaps * bitmap > end:
            return BAD_LENGTH, n, i, taken
        for _ in range(bitmaps):
            for c in range(columns):
                if (b[p + (c >> 3)] >> (c & 7)) & 1 == 0:
                    return PARTIAL_IMAGE, n, i, taken
            p += bitmap
        before = n
        index = 0
        while p < end:
            if n + 2 > capacity:
                return SPACE_FULL, before, i, taken
            p = _image(b, p, end, prefix, width, columns, pos, length, n)
            if p < 0:
                return BAD_LENGTH, before, i, taken
            event[n] = e
            image[n] = index
            index += 1
            if not update:
                op[n] = INSERT if kind == 23 or kind == 30 else DELETE
                n += 1
                continue
            if p >= end:
                return BAD_LENGTH, before, i, taken
            p = _image(b, p, end, prefix, width, columns, pos, length, n + 1)
            if p < 0:
                return BAD_LENGTH, before, i, taken
            if keys.shape[0] == 0 or not same_key(b, keys, pos, length, n):
                op[n] = DELETE
                n += 1
            else:
                for c in range(columns):
                    pos[c, n] = pos[c, n + 1]
                    length[c, n] = length[c, n + 1]
            op[n] = UPDATE
            event[n] = e
            image[n] = index
            index += 1
            n += 1
        taken += records[e, END] - records[e, BODY]
        if n >= group_rows or taken >= group_bytes:
            return GROUP_FULL, n, i + 1, taken
    return ALL_READ, n, chosen.shape[0], taken
