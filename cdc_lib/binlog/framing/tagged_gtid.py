"""GTID_TAGGED: a GTID whose source has a tag after its UUID (MySQL 8.3 and newer).

Unlike all other events its body is a message of MySQL's serialization library (``libs/mysql/serialization``): a version (1),
the size of the message, the number of the last field that a reader must know, then fields, each after its number and left
out when it has its default. Integers are of variable length: as many ones as the first byte has at its low end, so many
bytes follow, and what is left of all of them, little-endian, is the value; signed values have their sign in the lowest bit.

Fields (``libs/mysql/binlog/event/control_events.h``, Gtid_event): 0 flags, 1 UUID (16 integers), 2 number (signed), 3 tag
(length, text), 4 last committed and 5 sequence number (both signed), 6 immediate commit time, 7 original commit time, 8 length
of the transaction, 9 and 10 server versions, 11 ticket of the commit group.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.integers import little, u64

_LAST_KNOWN = 11
_LONGEST_TAG = 32

NUMBER, COMMITTED, FIELDS = 2, 6, _LAST_KNOWN + 1
"""Numbers of the relevant fields, and the number of all fields."""


@njit(cache=True, nogil=True)
def read_integer(b, p, end):
    """Return an unsigned integer of variable length (from 2**63 on negative, bit for bit the same) and the byte after it.

    The index is -1 when the integer leaves the message.
    """
    if p >= end:
        return np.int64(0), np.int64(-1)
    more = 0
    while more < 8 and (b[p] >> more) & 1:
        more += 1
    if p + 1 + more > end:
        return np.int64(0), np.int64(-1)
    if more == 8:
        return u64(b, p + 1), p + 9
    if more == 7:
        return little(b, p + 1, 7), p + 8
    return little(b, p, more + 1) >> (more + 1), p + 1 + more


@njit(cache=True, nogil=True)
def _read_bytes(b, p, end, count, target, at):
    """Read ``count`` integers of one byte each; returns the index after them or -1."""
    for i in range(count):
        value, p = read_integer(b, p, end)
        if p < 0 or value < 0 or value > 255:
            return np.int64(-1)
        target[at + i] = value
    return p


@njit(cache=True, nogil=True)
def _read_tag(b, p, end, sid):
    """Read the tag into ``sid[16:]``: its length and its text; returns the index after it or -1."""
    size, p = read_integer(b, p, end)
    if p < 0 or size < 0 or size > _LONGEST_TAG or p + size > end:
        return np.int64(-1)
    sid[16] = size
    for i in range(size):
        sid[17 + i] = b[p + i]
    return p + size


@njit(cache=True, nogil=True)
def read_tagged(b, p, end, fields, sid):
    """Read the body of a GTID_TAGGED.

    Args:
        b: bytes.
        p: start of the body.
        end: its end.
        fields: FIELDS numbers, zero; filled with those that the message holds.
        sid: 49 bytes, zero; filled with the UUID, the length of the tag and the tag.

    Returns:
        Whether it follows the format, has a UUID and a number, and has no unknown mandatory field.
    """
    start = p
    version, p = read_integer(b, p, end)
    if p < 0 or version != 1:
        return False
    size, p = read_integer(b, p, end)
    if p < 0 or size != end - start:
        return False
    must_know, p = read_integer(b, p, end)
    if p < 0 or must_know < 0 or must_know > _LAST_KNOWN:
        return False
    last = np.int64(-1)
    has_uuid = False
    while p < end:
        field, p = read_integer(b, p, end)
        if p < 0 or field <= last:
            return False
        if field > _LAST_KNOWN:
            break
        last = field
        if field == 1:
            has_uuid = True
            p = _read_bytes(b, p, end, 16, sid, 0)
        elif field == 3:
            p = _read_tag(b, p, end, sid)
        else:
            value, p = read_integer(b, p, end)
            if field == NUMBER:
                value = (value >> 1) ^ -(value & 1)
            fields[field] = value
        if p < 0:
            return False
    return has_uuid and fields[NUMBER] > 0
