"""Scans binlog files for transaction boundaries only: event headers, and the bodies of GTID events.

Every transaction begins with a GTID event (ANONYMOUS_GTID without GTIDs) since MySQL 5.6.5 and MariaDB 10.0: its start is a
boundary. The rest of each event is skipped without buffering it.

The scan ends at the target: the first transaction committed at a time or later, or outside a GTID set, or containing an offset.
The time may be by one server's clock, which gives no time for transactions of other servers. Those count as earlier only if a
later transaction of that server is earlier.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.crc32 import crc32
from cdc_lib.binlog.bytes.integers import u16, u24, u32, u56, u64
from cdc_lib.binlog.framing.packets import HEADER, SID_SIZE, begins, note_gtid, outside
from cdc_lib.binlog.framing.tagged_gtid import COMMITTED, FIELDS, NUMBER, read_tagged

NEED_MORE, FOUND, ASK, FULL, END_OF_STREAM, SERVER_ERROR, BAD_CHECKSUM, MALFORMED, NO_GTID = range(9)
"""Why a scan ended."""

BY_TIME, BY_GTID, BY_OFFSET = range(3)
"""Kinds of targets."""

(
    OFFSET,  # where in the file the next event starts
    CHECKSUM_BYTES,
    STOP_OFFSET,  # where the scan ends in this file; -1 when it ends in a later one
    WANTED,  # BY_TIME: microseconds since 1970; BY_OFFSET: the offset in the last file, else -1
    MODE,
    BEGAN,  # start of the current transaction; 0 before the first
    TIME,  # of that transaction
    LAST_TIME,  # of the transaction before
    MISSING,  # BY_GTID: how many transactions of the set are not seen yet
    SKIP,  # bytes of the wire to skip
    NEEDED,  # bytes that the next event takes on the wire, when it did not fit
    SID_COUNT,
    INSIDE,  # BY_OFFSET: whether it was found inside of the transaction
    SID,  # of the transaction's GTID, which is recorded when the next one begins; -1 without
    GNO,
    ORIGINAL,  # when the transaction committed, by the clock of the server that committed it first
    ORIGIN,  # the number of that server
    LAST_ORIGINAL,  # of the transaction before
    LAST_ORIGIN,
    CLOCK,  # BY_TIME: the server by whose clock WANTED is; -1 for any
    ALLOWED,  # BY_TIME: how much later than its statement began a transaction may have committed, microseconds
    EARLIER,  # BY_TIME: whether any transaction is known to be earlier
    FILE,  # number of the file
    DOUBT_FILE,  # BY_TIME: where the first transaction begins, after all that are known to be earlier, of another clock; 0: none
    DOUBT_OFFSET,
    ANONYMOUS,  # whether any transaction without a GTID was met, also one before which the scan ends
    NO_NUMBER,  # whether the current transaction has no GTID
    LAST_NO_NUMBER,  # of the transaction before
    RUNS,
    SLOTS,
) = range(30)
"""Slots of the state; runs of GTIDs follow, in the layout of :func:`cdc_lib.binlog.framing.packets.note_gtid`."""

MOST_RUNS = 4096
STATE_SIZE = SLOTS + 3 * MOST_RUNS
MOST_SIDS = 4096
_MAX_PAYLOAD = 0xFFFFFF
_SECOND = 1_000_000


@njit(cache=True, nogil=True)
def times_of(b, h, end, fields):
    """Return this server's and the original server's commit time in microseconds, and whether they are known.

    A standby writes both, each by its own clock. Without them there is only the header's second, in which a statement of the
    transaction began: possibly long before the commit. Layout of GTID events: packets.py and tagged_gtid.py.
    """
    kind = b[h + 4]
    if kind == 42 and fields[COMMITTED] > 0:
        return fields[COMMITTED], fields[COMMITTED + 1] or fields[COMMITTED], True
    p = h + HEADER + 42
    if (kind != 33 and kind != 34) or p + 7 > end:
        second = u32(b, h) * _SECOND
        return second, second, False
    stored = u56(b, p)
    time = stored & 0x7FFFFFFFFFFFFF
    if stored >> 55 and p + 14 <= end:
        return time, u56(b, p + 7) & 0x7FFFFFFFFFFFFF, True
    return time, time, True


@njit(cache=True, nogil=True)
def source_of(b, h, end, sid, fields):
    """Read source and number of a GTID event; 0 for an anonymous one, -1 if malformed."""
    kind = b[h + 4]
    p = h + HEADER
    for i in range(SID_SIZE):
        sid[i] = 0
    if kind == 42:
        for i in range(FIELDS):
            fields[i] = 0
        if not read_tagged(b, p, end, fields, sid):
            return np.int64(-1)
        return fields[NUMBER]
    if kind == 162:
        if p + 13 > end:
            return np.int64(-1)
        for i in range(4):
            sid[i] = b[p + 8 + i]
            sid[4 + i] = b[h + 5 + i]
        number = u64(b, p)
    else:
        if p + 25 > end:
            return np.int64(-1)
        if kind == 34:
            return np.int64(0)
        for i in range(16):
            sid[i] = b[p + 1 + i]
        number = u64(b, p + 17)
    return number if number > 0 else np.int64(-1)


@njit(cache=True, nogil=True)
def _row_of(sid, sids, count):
    """Return the row of a source in a table, or -1."""
    for row in range(count):
        same = True
        for i in range(SID_SIZE):
            if sids[row, i] != sid[i]:
                same = False
                break
        if same:
            return row
    return -1


@njit(cache=True, nogil=True)
def _is_in(row, number, starts, runs):
    """Whether a number is in the runs of a source: runs[starts[row]:starts[row + 1]]."""
    for i in range(starts[row], starts[row + 1]):  # noqa: SIM110 - the compiler knows no generators
        if runs[i, 0] <= number <= runs[i, 1]:
            return True
    return False


@njit(cache=True, nogil=True)
def _is_late(time, original, known, origin, state):
    """Whether a transaction may have committed at the target time or later, by that clock.

    Without a given clock, the later of both times counts. A header's second counts to its end.
    """
    if state[CLOCK] >= 0 and origin != state[CLOCK]:
        if state[DOUBT_FILE] == 0:
            state[DOUBT_FILE] = state[FILE]
            state[DOUBT_OFFSET] = state[OFFSET]
        return False
    at = original if state[CLOCK] >= 0 else max(time, original)
    if not known:
        at += _SECOND - 1 + state[ALLOWED]
    if at >= state[WANTED]:
        return True
    state[EARLIER] = 1
    state[DOUBT_FILE] = 0
    return False


@njit(cache=True, nogil=True)
def _is_wanted(number, time, original, known, origin, state, wanted_sids, starts, runs, sid):
    """Whether the scan ends before this transaction."""
    if state[MODE] == BY_TIME:
        return _is_late(time, original, known, origin, state)
    if state[MODE] != BY_GTID:
        return False
    if number == 0:
        # A transaction without GTID was read if a transaction of the set follows it.
        return state[MISSING] <= 0
    row = _row_of(sid, wanted_sids, wanted_sids.shape[0])
    if row < 0 or not _is_in(row, number, starts, runs):
        return True
    state[MISSING] -= 1
    return False


@njit(cache=True, nogil=True)
def _begin(b, h, end, state, wanted_sids, starts, runs, sids, scratch, fields):
    """Handle the start of a transaction; FOUND, FULL, MALFORMED, or NEED_MORE to continue."""
    number = source_of(b, h, end, scratch, fields)
    if number < 0:
        return MALFORMED
    row = np.int64(-1)
    if number > 0:
        row = _row_of(scratch, sids, state[SID_COUNT])
        if row < 0 and state[SID_COUNT] == sids.shape[0]:
            return FULL
    if state[SID] >= 0 and not note_gtid(state, np.int64(RUNS), state[SID], state[GNO]):
        return FULL
    if state[BEGAN] != 0:
        state[LAST_TIME] = state[TIME]
        state[LAST_ORIGINAL] = state[ORIGINAL]
        state[LAST_ORIGIN] = state[ORIGIN]
        state[LAST_NO_NUMBER] = state[NO_NUMBER]
    time, original, known = times_of(b, h, end, fields)
    origin = u32(b, h + 5)
    state[SID] = -1
    state[BEGAN] = 0
    if number == 0:
        state[ANONYMOUS] = 1
    if _is_wanted(number, time, original, known, origin, state, wanted_sids, starts, runs, scratch):
        return FOUND
    if number > 0 and row < 0:
        row = state[SID_COUNT]
        for i in range(SID_SIZE):
            sids[row, i] = scratch[i]
        state[SID_COUNT] += 1
    state[SID] = row
    state[GNO] = number
    state[BEGAN] = state[OFFSET]
    state[TIME] = max(time, original)
    state[ORIGINAL] = original
    state[ORIGIN] = origin
    state[NO_NUMBER] = number == 0
    return NEED_MORE


@njit(cache=True, nogil=True)
def walk(b, begin, fill, state, wanted_sids, starts, runs, sids, crc_tables, scratch, fields):
    """Scan the packets in ``b[begin:fill]``; framing as in :func:`cdc_lib.binlog.framing.packets.scan`.

    Args:
        b: bytes off the wire.
        begin: start of a packet, or of bytes to skip.
        fill: end of what was received.
        state: STATE_SIZE numbers, kept between calls.
        wanted_sids: (n, SID_SIZE) sources of the set.
        starts: n + 1 numbers: where the runs of each source start.
        runs: (m, 2) first and last number.
        sids: (MOST_SIDS, SID_SIZE) sources seen.
        crc_tables: of cdc_lib/binlog/bytes/crc32.py.
        scratch: SID_SIZE bytes.
        fields: of tagged_gtid.py.

    Returns:
        Why it ended, where the next packet starts (before the event for ASK, FOUND and FULL), start and end of the event, and
        the start of the packet after.
    """
    p = begin
    while True:
        if state[SKIP] > 0:
            step = min(state[SKIP], np.int64(fill - p))
            state[SKIP] -= step
            p += step
            if state[SKIP] > 0:
                state[NEEDED] = 1
                return NEED_MORE, p, p, p, p
        if state[OFFSET] == state[STOP_OFFSET]:
            return FOUND, p, p, p, p
        if p + 5 > fill:
            state[NEEDED] = 5
            return NEED_MORE, p, p, p, p
        payload = u24(b, p)
        status = b[p + 4]
        h = p + 5
        if status == 0xFE and payload < 9:
            return END_OF_STREAM, p, h, h, p
        if status != 0:
            state[NEEDED] = 4 + payload
            if p + 4 + payload > fill:
                return NEED_MORE, p, p, p, p
            return SERVER_ERROR, p, h, p + 4 + payload, p
        if h + HEADER > fill:
            state[NEEDED] = 5 + HEADER
            return NEED_MORE, p, p, p, p
        length = u32(b, h + 9)
        wire = length + 5
        if payload == _MAX_PAYLOAD:
            wire = length + 1 + 4 * ((length + 1) // _MAX_PAYLOAD + 1)
            if length + 1 < _MAX_PAYLOAD:
                return MALFORMED, p, h, h, p
        elif length + 1 != payload:
            return MALFORMED, p, h, h, p
        if length < HEADER + state[CHECKSUM_BYTES]:
            return MALFORMED, p, h, h, p
        kind = b[h + 4]
        end_position = u32(b, h + 13)
        made_up = (
            u16(b, h + 17) & 0x20 != 0
            or kind == 27
            or kind == 41
            or (end_position == 0 and (kind == 15 or kind == 4 or kind == 164))
        )
        if not made_up and end_position != 0 and (state[OFFSET] + length) & 0xFFFFFFFF != end_position:
            return MALFORMED, p, h, h, p
        if not made_up and state[MODE] == BY_OFFSET and state[WANTED] >= 0 and state[OFFSET] >= state[WANTED]:
            state[INSIDE] = not outside(kind)
            return FOUND, p, h, h, p
        is_begin = begins(kind)
        if state[MODE] == BY_TIME and state[BEGAN] == 0 and (kind == 2 or kind == 16 or kind == 19):
            return NO_GTID, p, h, h, p
        if is_begin or kind == 4 or kind == 3 or kind == 15 or kind == 35 or kind == 163:
            if payload == _MAX_PAYLOAD:
                return MALFORMED, p, h, h, p
            if p + wire > fill:
                state[NEEDED] = wire
                return NEED_MORE, p, p, p, p
            end = h + length - state[CHECKSUM_BYTES]
            if state[CHECKSUM_BYTES] != 0 and kind != 15 and crc32(b, h, end, crc_tables) != u32(b, end):
                return BAD_CHECKSUM, p, h, end, p
            if not is_begin:
                return ASK, p, h, end, p + wire
            found = _begin(b, h, end, state, wanted_sids, starts, runs, sids, scratch, fields)
            if found != NEED_MORE:
                return found, p, h, end, p + wire
        if not made_up:
            state[OFFSET] += length
        state[SKIP] = wire
