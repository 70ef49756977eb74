"""Locates the cells of row images that may lack columns.

Layout of the body: see locate.py. Each image has the columns that its bitmap names: with ``binlog_row_image=MINIMAL`` the key
before and what was assigned after, with NOBLOB all but BLOBs that were not needed, with MariaDB's FULL_NODUP all before and
what was assigned after. PARTIAL_UPDATE_ROWS puts before each after image its value options (a packed integer; bit 0:
partial JSON) and then one bit for each JSON column of the table, in the image or not: 1 where the cell is not a document
but a list of differences after a length of 4 bytes (MySQL ``sql/log_event.cc``, print_verbose_one_row).

A column that the after image lacks was not assigned, so the before image's cell is used. A column in neither image is ABSENT, or
UNKNOWN if the statement hides its changes (packets.py, HIDES). The key is never UNKNOWN: MariaDB names it in every REPLACE.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import little
from cdc_lib.binlog.framing.packets import BODY, END, HIDES, TYPE
from cdc_lib.binlog.rows.locate import (
    ALL_READ,
    BAD_COLUMNS,
    BAD_LENGTH,
    DELETE,
    GROUP_FULL,
    INSERT,
    SPACE_FULL,
    UPDATE,
    same_key,
    step_into,
)

ABSENT, UNKNOWN, PATCHED = -2, -3, -4
"""Lengths of cells that are not in the event: unchanged, changed to an unknown value, changed by JSON differences."""

NO_COLUMNS, BAD_OPTIONS, NO_KEY, NO_VALUES = 6, 7, 8, 9
"""Why locating ended, besides the reasons of locate.py."""

ROW, COLUMN, DOCUMENT, DOCUMENT_SIZE, DIFFS, DIFFS_SIZE, PATCH_SIZE = range(7)
"""Fields of a patch: the differences of one cell and the document that they belong to."""

NULL_BY_DEFAULT, JSON, MAY_BE_OMITTED, IN_KEY = 1, 2, 4, 8
"""Bits of a column's traits: an INSERT without it leaves NULL; it may come as differences; changes of it may be left out; it is
in the key."""


@njit(cache=True, nogil=True)
def is_partial(b, records, chosen, columns, flags):
    """Set the flag of each row event whose images are not plain and whole; lengths are judged by the walk itself."""
    for i in range(chosen.shape[0]):
        e = chosen[i]
        kind = records[e, TYPE]
        end = records[e, END]
        flags[i] = kind == 39
        count, p = step_into(b, records[e, BODY], end, kind)
        if count < 0:
            continue
        bitmap = (columns + 7) >> 3
        for _ in range(2 if kind == 24 or kind == 31 or kind == 39 else 1):
            if p + bitmap > end:
                break
            if _present(b, p, columns) < columns:
                flags[i] = True
            p += bitmap


@njit(cache=True, nogil=True, inline="always")
def _present(b, p, columns):
    """Number of columns that a bitmap names."""
    n = 0
    for c in range(columns):
        n += (b[p + (c >> 3)] >> (c & 7)) & 1
    return n


@njit(cache=True, nogil=True)
def _image(b, p, end, bitmap, partial, prefix, width, traits, pos, length, sizes, r):
    """Locate the cells of one image; returns the byte after it, or -1 when a length leaves the event.

    ``partial`` is the offset of the bits of partial JSON, or -1 without them; ``sizes`` receives the bytes of PATCHED cells.
    """
    columns = prefix.shape[0]
    nulls = p
    p += (_present(b, bitmap, columns) + 7) >> 3
    if p > end:
        return np.int64(-1)
    n = 0
    json = 0
    for c in range(columns):
        differences = False
        if traits[c] & JSON:
            differences = partial >= 0 and (b[partial + (json >> 3)] >> (json & 7)) & 1 == 1
            json += 1
        pos[c, r] = 0
        if (b[bitmap + (c >> 3)] >> (c & 7)) & 1 == 0:
            length[c, r] = ABSENT
            continue
        null = (b[nulls + (n >> 3)] >> (n & 7)) & 1
        n += 1
        if null:
            length[c, r] = -1
            continue
        k = 4 if differences else prefix[c]
        size = width[c]
        if k > 0:
            if p + k > end:
                return np.int64(-1)
            size = little(b, p, k)
            p += k
        if size > end - p:
            return np.int64(-1)
        pos[c, r] = p
        length[c, r] = size
        if differences:
            length[c, r] = PATCHED
            sizes[c] = size
        p += size
    return p


@njit(cache=True, nogil=True, inline="always")
def _options(b, p, end, json_columns):
    """Skip the value options; return the offset of the bits of partial JSON (-1 without), and the byte after."""
    if p >= end or b[p] > 1:
        return np.int64(-1), np.int64(-1)
    if b[p] == 0:
        return np.int64(-1), np.int64(p + 1)
    bits_end = p + 1 + ((json_columns + 7) >> 3)
    if bits_end > end:
        return np.int64(-1), np.int64(-1)
    return np.int64(p + 1), np.int64(bits_end)


@njit(cache=True, nogil=True)
def _overlay(traits, hides, pos, length, sizes, r, patches, count):
    """Complete the after image in row ``r + 1`` from the before image in ``r``; returns the number of patches.

    -1 when differences belong to a NULL.
    """
    for c in range(length.shape[0]):
        before = length[c, r]
        if length[c, r + 1] == ABSENT:
            pos[c, r + 1] = pos[c, r]
            hidden = traits[c] & MAY_BE_OMITTED or (hides and not traits[c] & IN_KEY)
            length[c, r + 1] = UNKNOWN if hidden else before
        elif length[c, r + 1] == PATCHED:
            if before == -1:
                return -1
            if before < 0:
                length[c, r + 1] = UNKNOWN
                continue
            patch = patches[count]
            patch[ROW], patch[COLUMN] = r + 1, c
            patch[DOCUMENT], patch[DOCUMENT_SIZE] = pos[c, r], before
            patch[DIFFS], patch[DIFFS_SIZE] = pos[c, r + 1], sizes[c]
            count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def _has_key(keys, length, r):
    missing = 0
    for i in range(keys.shape[0]):
        missing += length[keys[i], r] < -1
    return missing == 0


@njit(cache=True, nogil=True)
def locate_images(
    b, records, chosen, first, prefix, width, traits, keys, group_rows, group_bytes, pos, length, op, event, image, patches,
    sizes,
):  # fmt: skip
    """Locate every cell of the row events ``records[chosen[first:]]``, all of one layout, whichever columns they have.

    Arguments and results are those of :func:`cdc_lib.binlog.rows.locate.locate`; beside them, ``traits`` has for each column
    NULL_BY_DEFAULT and so on, lengths below -1 say why a cell is not there, ``patches`` (JSON columns * capacity, PATCH_SIZE)
    takes the differences found, whose number is the last result, and ``sizes`` is scratch, one number per column.
    """
    columns = prefix.shape[0]
    capacity = op.shape[0]
    bitmap = (columns + 7) >> 3
    json_columns = 0
    for c in range(columns):
        json_columns += 1 if traits[c] & JSON else 0
    n = 0
    taken = 0
    patched = 0
    for i in range(first, chosen.shape[0]):
        e = chosen[i]
        kind = records[e, TYPE]
        end = records[e, END]
        count, p = step_into(b, records[e, BODY], end, kind)
        if count < 0:
            return BAD_LENGTH, n, i, taken, patched
        if count != columns:
            return BAD_COLUMNS, n, i, taken, patched
        update = kind == 24 or kind == 31 or kind == 39
        one = p
        two = p + bitmap if update else p
        p = two + bitmap
        if p > end:
            return BAD_LENGTH, n, i, taken, patched
        # Images without a byte could not be counted; with a column in it, each has its bitmap of NULLs.
        if _present(b, one, columns) == 0:
            return NO_VALUES if kind == 23 or kind == 30 else NO_COLUMNS, n, i, taken, patched
        before, patched_before = n, patched
        index = 0
        while p < end:
            if n + 2 > capacity:
                return SPACE_FULL, before, i, taken, patched_before
            p = _image(b, p, end, one, -1, prefix, width, traits, pos, length, sizes, n)
            if p < 0:
                return BAD_LENGTH, before, i, taken, patched
            event[n] = e
            image[n] = index
            index += 1
            if not update:
                insert = kind == 23 or kind == 30
                op[n] = INSERT if insert else DELETE
                if insert:
                    for c in range(columns):
                        if length[c, n] == ABSENT and traits[c] & NULL_BY_DEFAULT:
                            length[c, n] = -1
                elif not _has_key(keys, length, n):
                    return NO_KEY, before, i, taken, patched
                n += 1
                continue
            partial = np.int64(-1)
            if kind == 39:
                partial, p = _options(b, p, end, json_columns)
                if p < 0:
                    return BAD_OPTIONS, before, i, taken, patched
            if p > end:
                return BAD_LENGTH, before, i, taken, patched
            p = _image(b, p, end, two, partial, prefix, width, traits, pos, length, sizes, n + 1)
            if p < 0:
                return BAD_LENGTH, before, i, taken, patched
            from_patch = patched
            patched = _overlay(traits, records[e, HIDES], pos, length, sizes, n, patches, patched)
            if patched < 0:
                return BAD_OPTIONS, before, i, taken, from_patch
            if not _has_key(keys, length, n) or not _has_key(keys, length, n + 1):
                return NO_KEY, before, i, taken, from_patch
            if keys.shape[0] == 0 or not same_key(b, keys, pos, length, n):
                op[n] = DELETE
                n += 1
            else:
                for c in range(columns):
                    pos[c, n] = pos[c, n + 1]
                    length[c, n] = length[c, n + 1]
                for k in range(from_patch, patched):
                    patches[k, ROW] = n
            op[n] = UPDATE
            event[n] = e
            image[n] = index
            index += 1
            n += 1
        taken += records[e, END] - records[e, BODY]
        if n >= group_rows or taken >= group_bytes:
            return GROUP_FULL, n, i + 1, taken, patched
    return ALL_READ, n, chosen.shape[0], taken, patched
