"""From the bytes on the wire to a list of row events, without a Python object per event.

A packet is three bytes of length, one of sequence and the payload; in a binlog stream the payload is a status byte (0) and
one event. An event of 2**24 - 2 bytes or more goes over several packets (MySQL internals, "Sending more than 16Mb"); its
pieces are moved together in place. An event has a header of 19 bytes: time 4, type 1, server id 4, length 4, end position
4, flags 2.

Whatever is not one of the frequent events ends the scan with RARE: Python looks at it and scans on behind it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.decode.checksum import crc32
from cdc_lib.decode.wire import u16, u24, u32, u48, u56, u64

NEED_MORE, RARE, RECORDS_FULL, END_OF_STREAM, SERVER_ERROR, BAD_CHECKSUM, MALFORMED, STOPPED = range(8)
"""Why a scan ended."""

(
    OFFSET,  # where in the binlog file the next event starts
    IN_TRANSACTION,  # 1 between the first event of a transaction and its end
    CHECKSUM_BYTES,  # 4 when events end in a CRC32, else 0
    STOP_OFFSET,  # where the window ends in this file; -1 when it ends in a later one
    COMMIT_TIME,  # microseconds since 1970 of the current transaction
    GNO,  # transaction number of the current GTID
    SID,  # row of the table of GTID sources; -1 without a GTID
    SID_COUNT,
    FILE_NUMBER,
    NEEDED,  # bytes that the next event takes on the wire, when it did not fit
    EVENTS,
    TRANSACTIONS,
    FIRST_TIME,
    LAST_TIME,
    STANDALONE,  # MariaDB: the group is one statement without a COMMIT
    FIRST_SID,
    FIRST_GNO,
    LAST_SID,
    LAST_GNO,
    STATE_SIZE,
) = range(20)
"""Slots of the state that goes from scan to scan."""

BODY, END, TYPE, SLOT, START, TIME, TXN, SOURCE, FILE, RECORD_SIZE = range(10)
"""Fields of a record: one row event of a wanted table."""

HEADER = 19
MAX_SIDS = 256
UNWANTED = -2
UNKNOWN = -1
_MAX_PAYLOAD = 0xFFFFFF


@njit(cache=True, nogil=True)
def slot_of(ids, slots, table_id):
    """Look a table id up in an open-addressed table; UNKNOWN when it is not there."""
    mask = ids.shape[0] - 1
    i = (table_id * 0x9E3779B1) & mask
    while ids[i] != -1:
        if ids[i] == table_id:
            return slots[i]
        i = (i + 1) & mask
    return np.int64(UNKNOWN)


@njit(cache=True, nogil=True)
def _join_packets(b, p, wire):
    """Move the pieces of a long event together behind its first packet header; False when one leaves the event."""
    source = p + 4 + _MAX_PAYLOAD
    target = source
    stop = p + wire
    while source < stop:
        if source + 4 > stop:
            return False
        count = u24(b, source)
        source += 4
        if source + count > stop:
            return False
        for i in range(count):
            b[target + i] = b[source + i]
        source += count
        target += count
    return source == stop


@njit(cache=True, nogil=True)
def _sid_row(b, p, sids, state):
    """Row of the 16 bytes at ``p`` in the table of GTID sources, added when new; -1 when the table is full."""
    n = state[SID_COUNT]
    for row in range(n):
        same = True
        for i in range(16):
            if sids[row, i] != b[p + i]:
                same = False
                break
        if same:
            return np.int64(row)
    if n == MAX_SIDS:
        return np.int64(-1)
    for i in range(16):
        sids[n, i] = b[p + i]
    state[SID_COUNT] = n + 1
    return np.int64(n)


@njit(cache=True, nogil=True)
def _begin_mysql(b, h, end, sids, state):
    """GTID or ANONYMOUS_GTID: flag 1, source 16, number 8, type 1, clock 16, then commit times of 7 bytes.

    Source: MySQL ``libs/mysql/binlog/event/control_events.h``, Gtid_event. Bit 55 of the first time says that an original
    commit time follows; the first one is this server's.
    """
    if h + HEADER + 25 > end:
        return False
    p = h + HEADER
    state[IN_TRANSACTION] = 1
    state[STANDALONE] = 0
    state[COMMIT_TIME] = u32(b, h) * 1_000_000
    if p + 25 + 17 + 7 <= end:
        state[COMMIT_TIME] = u56(b, p + 42) & 0x7FFFFFFFFFFFFF
    state[SID] = -1
    state[GNO] = 0
    if b[h + 4] == 33:
        row = _sid_row(b, p + 1, sids, state)
        if row < 0:
            return False
        state[SID] = row
        state[GNO] = u64(b, p + 17)
    return True


@njit(cache=True, nogil=True)
def _begin_mariadb(b, h, end, sids, state, scratch):
    """MARIADB_GTID: sequence 8, domain 4, flags 1 (bit 0: standalone); the server id is that of the header.

    Source: MariaDB ``sql/log_event.h``, Gtid_log_event.
    """
    p = h + HEADER
    if p + 13 > end:
        return False
    state[IN_TRANSACTION] = 1
    state[STANDALONE] = b[p + 12] & 1
    state[COMMIT_TIME] = u32(b, h) * 1_000_000
    for i in range(16):
        scratch[i] = 0
    for i in range(4):
        scratch[i] = b[p + 8 + i]
        scratch[4 + i] = b[h + 5 + i]
    row = _sid_row(scratch, 0, sids, state)
    if row < 0:
        return False
    state[SID] = row
    state[GNO] = u64(b, p)
    return True


@njit(cache=True, nogil=True)
def _end(state):
    """Close the transaction: what follows starts on a boundary."""
    state[IN_TRANSACTION] = 0
    state[STANDALONE] = 0
    state[TRANSACTIONS] += 1
    if state[FIRST_TIME] == 0:
        state[FIRST_TIME] = state[COMMIT_TIME]
        state[FIRST_SID] = state[SID]
        state[FIRST_GNO] = state[GNO]
    state[LAST_TIME] = state[COMMIT_TIME]
    state[LAST_SID] = state[SID]
    state[LAST_GNO] = state[GNO]


end_transaction = _end


@njit(cache=True, nogil=True)
def _plain_query(b, h, end):
    """1 for BEGIN, 2 for COMMIT, 0 for any other statement, -1 when the lengths lie.

    QUERY: thread 4, seconds 4, schema length 1, error 2, status length 2, status, schema, a zero byte, the statement.
    """
    p = h + HEADER
    if p + 13 > end:
        return -1
    q = p + 13 + u16(b, p + 11) + np.int64(b[p + 8]) + 1
    if q > end:
        return -1
    n = end - q
    if n == 5 and b[q] == 66 and b[q + 1] == 69 and b[q + 2] == 71 and b[q + 3] == 73 and b[q + 4] == 78:
        return 1
    if (
        n == 6
        and b[q] == 67
        and b[q + 1] == 79
        and b[q + 2] == 77
        and b[q + 3] == 77
        and b[q + 4] == 73
        and b[q + 5] == 84
    ):
        return 2
    return 0


@njit(cache=True, nogil=True)
def scan(b, begin, fill, state, ids, slots, kinds, sids, records, crc_tables, scratch):
    """Walk the packets in ``b[begin:fill]``.

    Args:
        b: bytes off the wire.
        begin: start of a packet.
        fill: end of what was received.
        state: STATE_SIZE numbers, kept from call to call.
        ids: open-addressed table ids (-1 is free), a power of two long.
        slots: slot of each id, or UNWANTED.
        kinds: what to do with each of the 256 event types: 0 pass over, 1 look at here, 2 give to Python.
        sids: (MAX_SIDS, 16) GTID sources.
        records: (n, RECORD_SIZE) to be filled.
        crc_tables: of checksum.py.
        scratch: 16 bytes.

    Returns:
        Why it ended, number of records, where the next packet starts (before the rare event), and for RARE, SERVER_ERROR,
        BAD_CHECKSUM and MALFORMED the start and end of the event without its checksum, and the start of the packet behind.
    """
    n = 0
    p = begin
    while True:
        if state[IN_TRANSACTION] == 0 and state[OFFSET] == state[STOP_OFFSET]:
            return STOPPED, n, p, p, p, p
        if n == records.shape[0]:
            return RECORDS_FULL, n, p, p, p, p
        if p + 5 > fill:
            state[NEEDED] = 5
            return NEED_MORE, n, p, p, p, p
        payload = u24(b, p)
        h = p + 5
        wire = payload + 4
        if payload == _MAX_PAYLOAD and b[p + 4] == 0:
            if h + HEADER > fill:
                state[NEEDED] = 5 + HEADER
                return NEED_MORE, n, p, p, p, p
            length = u32(b, h + 9)
            wire = length + 1 + 4 * ((length + 1) // _MAX_PAYLOAD + 1)
            if length + 1 < _MAX_PAYLOAD or (p + wire <= fill and not _join_packets(b, p, wire)):
                return MALFORMED, n, p, h, h, p
        else:
            length = payload - 1
        if p + wire > fill:
            state[NEEDED] = wire
            return NEED_MORE, n, p, p, p, p
        if b[p + 4] == 0xFE and payload < 9:
            return END_OF_STREAM, n, p, h, h + length, p + wire
        if b[p + 4] != 0:
            return SERVER_ERROR, n, p, h, h + length, p + wire
        if length < HEADER + state[CHECKSUM_BYTES] or u32(b, h + 9) != length:
            return MALFORMED, n, p, h, h + max(length, 0), p + wire
        kind = b[h + 4]
        flags = u16(b, h + 17)
        end = h + length - state[CHECKSUM_BYTES]
        # The format description carries the algorithm and is checked where it is parsed.
        if state[CHECKSUM_BYTES] != 0 and kind != 15 and crc32(b, h, end, crc_tables) != u32(b, end):
            return BAD_CHECKSUM, n, p, h, end, p + wire
        # MariaDB 11.4 leaves the position of events inside a transaction at 0; what a server makes up has 0 as well.
        place = u32(b, h + 13)
        in_file = flags & 0x20 == 0 and kind != 27 and kind != 41 and (place != 0 or (kind != 15 and kind != 4))
        if in_file and place != 0 and (state[OFFSET] + length) & 0xFFFFFFFF != place:
            return MALFORMED, n, p, h, end, p + wire
        action = kinds[kind]
        if action == 2:
            return RARE, n, p, h, end, p + wire
        if action == 1:
            if kind == 16:
                _end(state)
            elif kind == 2:
                plain = _plain_query(b, h, end)
                if plain == 1:
                    state[IN_TRANSACTION] = 1
                elif plain == 2:
                    _end(state)
                elif plain < 0:
                    return MALFORMED, n, p, h, end, p + wire
                else:
                    return RARE, n, p, h, end, p + wire
            elif kind == 33 or kind == 34:
                if not _begin_mysql(b, h, end, sids, state):
                    return MALFORMED, n, p, h, end, p + wire
            elif kind == 162:
                if not _begin_mariadb(b, h, end, sids, state, scratch):
                    return MALFORMED, n, p, h, end, p + wire
            else:
                if h + HEADER + 8 > end:
                    return MALFORMED, n, p, h, end, p + wire
                slot = slot_of(ids, slots, u48(b, h + HEADER))
                if slot == UNKNOWN:
                    return RARE, n, p, h, end, p + wire
                if slot != UNWANTED and kind != 19:
                    r = records[n]
                    r[BODY] = h + HEADER + 8
                    r[END] = end
                    r[TYPE] = kind
                    r[SLOT] = slot
                    r[START] = state[OFFSET]
                    r[TIME] = state[COMMIT_TIME]
                    r[TXN] = state[GNO]
                    r[SOURCE] = state[SID]
                    r[FILE] = state[FILE_NUMBER]
                    n += 1
        state[EVENTS] += 1
        if in_file:
            state[OFFSET] += length
        p += wire
