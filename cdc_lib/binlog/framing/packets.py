"""Scans the bytes on the wire for row events, without a Python object per event.

A packet is three bytes of length, one of sequence and the payload; in a binlog stream the payload is a status byte (0) and
one event. An event of 2**24 - 2 bytes or more spans several packets (MySQL internals, "Sending more than 16Mb"); its
parts are joined in place. An event has a header of 19 bytes: time 4, type 1, server id 4, length 4, end position
4, flags 2.

Any other than the frequent events ends the scan with CONTROL_EVENT: Python handles it and continues the scan after it. The handling of
one event (:func:`take`) is shared with the scan of compressed transactions (payload_events.py).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.crc32 import crc32
from cdc_lib.binlog.bytes.integers import u16, u24, u32, u48, u56, u64
from cdc_lib.binlog.framing.tagged_gtid import COMMITTED, FIELDS, NUMBER, read_tagged

NEED_MORE, CONTROL_EVENT, RECORDS_FULL, END_OF_STREAM, SERVER_ERROR, BAD_CHECKSUM, MALFORMED, STOPPED, SIDS_FULL = (
    range(9)
)
"""Why a scan ended."""

TAKEN, RECORDED = -1, -2
"""Other results of one event."""

PASS, LOOK, ASK, REFUSE = range(4)
"""What to do with an event type: ignore it, handle it here, pass it to Python, stop because it is not valid here."""

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
    XA,  # start of the current XA transaction; 0 outside of one
    GROUP,  # where the current transaction began
    ANNOUNCED,  # MariaDB: 1 when the statement of the group is an ALTER that only starts, or failed
    STATEMENT,  # what is known of the current statement
    ORIGIN,  # number of the server that committed the current transaction first
    ORIGINAL,  # when, by its clock
    LAST_ORIGIN,
    LAST_ORIGINAL,
    BEGIN,  # where the current transaction's GTID event began; 0 outside of one, and without such events
    DIGEST,  # of the events from there on
    LAST_BEGIN,
    LAST_DIGEST,
    LAST_FILE,
    RUNS,  # runs of GTIDs recorded after the other slots
    SLOTS,
) = range(34)
"""Slots of the state that is kept between scans; :data:`MOST_RUNS` runs of three numbers follow."""

DIGESTED = 64 * 1024
"""Only the events of a transaction's first bytes are digested: so many are read to recognize it later."""

MOST_RUNS = 256
STATE_SIZE = SLOTS + 3 * MOST_RUNS
_RUNS_LOOKED_AT = 8
"""How many of the newest runs a GTID may extend: so many sources may alternate without a run for each transaction."""

COMPLETE, INCOMPLETE, ANNOTATED, ONE_TABLE = range(4)
"""What is known of a statement: its after images have all changed columns; unknown (MariaDB); MariaDB's ANNOTATE_ROWS shows an
UPDATE or an INSERT, before and after its first table map.

MariaDB may log a REPLACE as an update. Without full images the after image has only the columns that the statement named, not
the others, which got their defaults (seen with 11.4: its own replicas differ then).
"""

BODY, END, TYPE, SLOT, START, TIME, TXN, SOURCE, FILE, ROW, PACKED, BEGAN, HIDES, RECORD_SIZE = range(14)
"""Fields of a record: one row event of a captured table.

START, ROW: offset of the event in the file, and number of its first row there: 0, or inside a compressed transaction the
event's offset in the payload, which leaves room for all of its rows. PACKED: 1 when the rows are compressed (MariaDB). BEGAN: the
state's XA. HIDES: 1 when columns that are not in an after image may have changed.
"""

HEADER = 19
SID_SIZE = 49
"""Bytes of a GTID source: 16 of the UUID, the length of the tag, the tag. MariaDB: domain 4, server id 4."""
FIRST_SIDS = 64
"""Initial capacity for GTID sources; it grows."""
UNWANTED = -2
UNKNOWN = -1
LONGEST_EVENT = 0x7F000000
"""Cells are found by 32-bit numbers, in a buffer that may hold 16 MiB more. The most that max_allowed_packet can be is
1 GiB (MySQL manual, "server system variables")."""
_MAX_PAYLOAD = 0xFFFFFF
_ASSIGNING = tuple(int.from_bytes(word, "big") for word in (b"UPDATE", b"INSERT"))


@njit(cache=True, nogil=True)
def slot_of(ids, slots, table_id):
    """Look up a table id in an open-addressed hash table; UNKNOWN if absent."""
    mask = ids.shape[0] - 1
    i = (table_id * 0x9E3779B1) & mask
    while ids[i] != -1:
        if ids[i] == table_id:
            return slots[i]
        i = (i + 1) & mask
    return np.int64(UNKNOWN)


@njit(cache=True, nogil=True)
def _join_packets(b, p, wire):
    """Join the parts of a long event after its first packet header; False if one exceeds the event."""
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
def _same_sid(sids, row, key):
    for i in range(SID_SIZE):  # noqa: SIM110 - the compiler knows no generators
        if sids[row, i] != key[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_untagged(sids, row, b, p):
    """Whether a row of GTID sources is the untagged UUID at ``p``: mostly the source is that of the previous transaction."""
    if row < 0 or sids[row, 16] != 0:
        return False
    for i in range(16):  # noqa: SIM110 - as above
        if sids[row, i] != b[p + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _take_sid(key, sids, state):
    """Set SID to the row of a GTID source, added if new; SIDS_FULL if there is no room."""
    n = state[SID_COUNT]
    for row in range(n):
        if _same_sid(sids, row, key):
            state[SID] = row
            return TAKEN
    if n == sids.shape[0]:
        return SIDS_FULL
    for i in range(SID_SIZE):
        sids[n, i] = key[i]
    state[SID_COUNT] = n + 1
    state[SID] = n
    return TAKEN


@njit(cache=True, nogil=True)
def note_gtid(state, base, sid, number):
    """Record a GTID in the runs whose count is at ``state[base]``, followed by source, first and last number of each.

    Returns False if there is no room; nothing is recorded then.
    """
    n = state[base]
    for i in range(n - 1, max(n - 1 - _RUNS_LOOKED_AT, -1), -1):
        r = base + 1 + 3 * i
        if state[r] == sid and state[r + 1] <= number <= state[r + 2] + 1:
            state[r + 2] = max(state[r + 2], number)
            return True
    r = base + 1 + 3 * n
    if r + 3 > state.shape[0]:
        return False
    state[r] = sid
    state[r + 1] = number
    state[r + 2] = number
    state[base] = n + 1
    return True


@njit(cache=True, nogil=True)
def _note(state):
    """Record the GTID of a new transaction; SIDS_FULL if there is no room, then the event is scanned again."""
    if state[GNO] <= 0:
        return MALFORMED
    if note_gtid(state, np.int64(RUNS), state[SID], state[GNO]):
        return TAKEN
    return SIDS_FULL


@njit(cache=True, nogil=True)
def _take_gtid(key, sids, state):
    """Set SID to the row of a GTID source, and record the GTID."""
    status = _take_sid(key, sids, state)
    if status != TAKEN:
        return status
    return _note(state)


@njit(cache=True, nogil=True)
def _open(state):
    """Begin a transaction at the current event."""
    state[IN_TRANSACTION] = 1
    state[STANDALONE] = 0
    state[XA] = 0
    state[ANNOUNCED] = 0
    state[STATEMENT] = COMPLETE
    state[GROUP] = state[OFFSET]


@njit(cache=True, nogil=True)
def _dated(b, h, state):
    """Set origin and time of a transaction from the header of its first event: the time when a statement of it began."""
    state[COMMIT_TIME] = state[ORIGINAL] = u32(b, h) * 1_000_000
    state[ORIGIN] = u32(b, h + 5)


@njit(cache=True, nogil=True)
def _begin_mysql(b, h, end, sids, state, scratch):
    """GTID or ANONYMOUS_GTID: flag 1, source 16, number 8, type 1, clock 16, then commit times of 7 bytes.

    Source: MySQL ``libs/mysql/binlog/event/control_events.h``, Gtid_event. Bit 55 of the first time says that an original
    commit time follows; the first one is this server's.
    """
    if h + HEADER + 25 > end:
        return MALFORMED
    p = h + HEADER
    _open(state)
    _dated(b, h, state)
    if p + 25 + 17 + 7 <= end:
        stored = u56(b, p + 42)
        state[COMMIT_TIME] = state[ORIGINAL] = stored & 0x7FFFFFFFFFFFFF
        if stored >> 55 and p + 25 + 17 + 14 <= end:
            state[ORIGINAL] = u56(b, p + 49) & 0x7FFFFFFFFFFFFF
    if b[h + 4] == 34:
        state[SID] = -1
        state[GNO] = 0
        return TAKEN
    state[GNO] = u64(b, p + 17)
    if _is_untagged(sids, state[SID], b, p + 1):
        return _note(state)
    scratch[:SID_SIZE] = 0
    for i in range(16):
        scratch[i] = b[p + 1 + i]
    return _take_gtid(scratch, sids, state)


@njit(cache=True, nogil=True)
def _begin_tagged(b, h, end, sids, state, scratch):
    """GTID_TAGGED: as GTID, in the encoding of tagged_gtid.py."""
    fields = np.zeros(FIELDS, np.int64)
    scratch[:SID_SIZE] = 0
    if not read_tagged(b, h + HEADER, end, fields, scratch):
        return MALFORMED
    _open(state)
    _dated(b, h, state)
    if fields[COMMITTED] > 0:
        state[COMMIT_TIME] = fields[COMMITTED]
        state[ORIGINAL] = fields[COMMITTED + 1] or fields[COMMITTED]
    state[GNO] = fields[NUMBER]
    return _take_gtid(scratch, sids, state)


@njit(cache=True, nogil=True)
def _begin_mariadb(b, h, end, sids, state, scratch):
    """MARIADB_GTID: sequence 8, domain 4, flags 1; the server id is that of the header.

    Flags: bit 0 standalone, bit 1 a number of 8 bytes follows, bit 6 the group ends in XA PREPARE, bit 7 it is XA COMMIT or
    ROLLBACK. With either of the last two an XA id follows: format 4, two lengths of 1, and so many bytes. Then there may be a
    byte of more flags: bit 1 START ALTER, bit 2 COMMIT ALTER, bit 3 ROLLBACK ALTER (binlog_alter_two_phase).
    Source: MariaDB ``sql/log_event.h``, Gtid_log_event.
    """
    p = h + HEADER
    if p + 13 > end:
        return MALFORMED
    _open(state)
    state[STATEMENT] = INCOMPLETE
    flags = b[p + 12]
    state[STANDALONE] = flags & 1
    state[XA] = state[OFFSET] if flags & 0x40 else 0
    more = p + 13 + (8 if flags & 2 else 0)
    if flags & 0xC0 and more + 6 <= end:
        more += 6 + np.int64(b[more + 4]) + np.int64(b[more + 5])
    state[ANNOUNCED] = 1 if more < end and b[more] & 0x0A else 0
    _dated(b, h, state)
    state[GNO] = u64(b, p)
    scratch[:SID_SIZE] = 0
    for i in range(4):
        scratch[i] = b[p + 8 + i]
        scratch[4 + i] = b[h + 5 + i]
    return _take_gtid(scratch, sids, state)


@njit(cache=True, nogil=True)
def _end(state):
    """End the transaction: the next event starts on a boundary."""
    state[IN_TRANSACTION] = 0
    state[STANDALONE] = 0
    state[XA] = 0
    state[TRANSACTIONS] += 1
    if state[TRANSACTIONS] == 1:
        state[FIRST_TIME] = state[COMMIT_TIME]
        state[FIRST_SID] = state[SID]
        state[FIRST_GNO] = state[GNO]
    # Clocks are set back, and MariaDB writes when statements began: the first is not always the earliest.
    state[FIRST_TIME] = min(state[FIRST_TIME], state[COMMIT_TIME])
    state[LAST_TIME] = max(state[LAST_TIME], state[COMMIT_TIME])
    state[LAST_SID] = state[SID]
    state[LAST_GNO] = state[GNO]
    state[LAST_ORIGIN] = state[ORIGIN]
    state[LAST_ORIGINAL] = state[ORIGINAL]
    state[LAST_BEGIN] = state[BEGIN]
    state[LAST_DIGEST] = state[DIGEST]
    state[LAST_FILE] = state[FILE_NUMBER]
    state[BEGIN] = 0


end_transaction = _end


@njit(cache=True, nogil=True)
def outside(kind):
    """Whether an event type is between transactions, or begins one."""
    return (
        kind == 3 or kind == 4 or kind == 15 or kind == 27 or kind == 35 or kind == 41
        or kind == 161 or kind == 163 or kind == 164 or begins(kind)
    )  # fmt: skip


@njit(cache=True, nogil=True)
def begins(kind):
    """Whether an event type begins a transaction: GTID, ANONYMOUS_GTID, GTID_TAGGED, and MariaDB's GTID."""
    return kind == 33 or kind == 34 or kind == 42 or kind == 162


@njit(cache=True, nogil=True)
def with_event(digest, crc):
    """Return the digest of a transaction's events with one more, given by the CRC32 of its bytes."""
    return ((digest << 5) ^ (digest >> 27) ^ np.int64(crc)) & 0xFFFFFFFF


@njit(cache=True, nogil=True)
def _digest(b, h, end, length, state, crc_tables):
    """Digest an event of the file if it is one of a transaction's first. An event may be scanned twice only if it begins one."""
    kind = b[h + 4]
    if begins(kind):
        state[BEGIN] = state[OFFSET]
        state[DIGEST] = 0
    elif state[BEGIN] == 0 or outside(kind):
        return
    if state[OFFSET] + length - state[BEGIN] <= DIGESTED:
        crc = u32(b, end) if state[CHECKSUM_BYTES] != 0 else crc32(b, h, end, crc_tables)
        state[DIGEST] = with_event(state[DIGEST], crc)


@njit(cache=True, nogil=True)
def _plain_query(b, h, end):
    """1 for BEGIN, 2 for COMMIT, 0 for any other statement, -1 if malformed.

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


@njit(cache=True, nogil=True, inline="always")
def take(b, h, end, row, state, ids, slots, kinds, sids, records, n, scratch):
    """Handle one event.

    Args:
        b: bytes, the event's header at ``h``.
        h: start of the event.
        end: end of the event without its checksum.
        row: number of its first row at its offset.
        state: as of :func:`scan`, as are ids, slots, kinds, sids, records and scratch.
        ids: table ids.
        slots: of the tables.
        kinds: PASS, LOOK, ASK or REFUSE for each type.
        sids: GTID sources.
        records: to be filled.
        n: record to fill.
        scratch: SID_SIZE bytes.

    Returns:
        TAKEN; RECORDED: the record is filled; CONTROL_EVENT: Python must handle it; MALFORMED; SIDS_FULL: nothing was done.
    """
    kind = b[h + 4]
    action = kinds[kind]
    if action == PASS:
        return TAKEN
    if action == ASK:
        return CONTROL_EVENT
    if action == REFUSE:
        return MALFORMED
    if kind == 16:
        _end(state)
        return TAKEN
    if kind == 2:
        return _take_query(b, h, end, state)
    if kind == 33 or kind == 34:
        return _begin_mysql(b, h, end, sids, state, scratch)
    if kind == 42:
        return _begin_tagged(b, h, end, sids, state, scratch)
    if kind == 162:
        return _begin_mariadb(b, h, end, sids, state, scratch)
    if kind == 160:
        state[STATEMENT] = ANNOTATED if _assigns(b, h + HEADER, end) else INCOMPLETE
        return TAKEN
    if h + HEADER + 8 > end:
        return MALFORMED
    hides = state[STATEMENT] == INCOMPLETE
    if state[STATEMENT] >= ANNOTATED:
        _go_on(b, h, kind, state)
    slot = slot_of(ids, slots, u48(b, h + HEADER))
    if slot == UNKNOWN:
        return CONTROL_EVENT
    if slot == UNWANTED or kind == 19:
        return TAKEN
    _record(records[n], h, end, kind, slot, row, state, hides)
    return RECORDED


@njit(cache=True, nogil=True)
def _assigns(b, p, end):
    """Whether a statement is plainly an UPDATE or an INSERT, after blanks and comments.

    ANNOTATE_ROWS: the text of the statement (MariaDB ``sql/log_event.h``, Annotate_rows_log_event).
    """
    while p < end:
        if b[p] == 32 or 9 <= b[p] <= 13:
            p += 1
            continue
        # /*! and /*M! are executed, not comments.
        if p + 3 >= end or b[p] != 47 or b[p + 1] != 42 or b[p + 2] == 33 or (b[p + 2] == 77 and b[p + 3] == 33):
            break
        p += 2
        while p + 1 < end and not (b[p] == 42 and b[p + 1] == 47):
            p += 1
        p += 2
    if p + 6 >= end or 48 <= b[p + 6] <= 57 or 65 <= (b[p + 6] & 0xDF) <= 90 or b[p + 6] == 95 or b[p + 6] >= 128:
        return False
    word = np.int64(0)
    for i in range(6):
        word = word << 8 | np.int64(b[p + i] & 0xDF)
    return word in _ASSIGNING


@njit(cache=True, nogil=True)
def _go_on(b, h, kind, state):
    """Follow an annotated statement over its table maps and rows, up to the event whose flag (bit 0) ends it.

    With a second table it may have triggers, whose statements are unknown.
    """
    if kind == 19:
        state[STATEMENT] = ONE_TABLE if state[STATEMENT] == ANNOTATED else INCOMPLETE
    elif u16(b, h + HEADER + 6) & 1:
        state[STATEMENT] = INCOMPLETE


@njit(cache=True, nogil=True)
def _take_query(b, h, end, state):
    plain = _plain_query(b, h, end)
    if plain < 0:
        return MALFORMED
    if state[IN_TRANSACTION] == 0:
        # Before 5.6.5 there are no GTID events: the statement, BEGIN mostly, comes first.
        _dated(b, h, state)
        state[SID] = -1
        state[GNO] = 0
    if plain == 0:
        return CONTROL_EVENT
    if plain == 1:
        if state[IN_TRANSACTION] == 0:
            state[GROUP] = state[OFFSET]
        state[IN_TRANSACTION] = 1
    else:
        _end(state)
    return TAKEN


@njit(cache=True, nogil=True)
def _record(r, h, end, kind, slot, row, state, hides):
    """Record a row event. MariaDB's compressed types, 166 to 168 and 169 to 171, are recorded as 23 to 25 and 30 to 32."""
    packed = kind >= 166
    if packed:
        kind = kind - 143 if kind <= 168 else kind - 139
    r[BODY] = h + HEADER + 8
    r[END] = end
    r[TYPE] = kind
    r[SLOT] = slot
    r[START] = state[OFFSET]
    r[TIME] = state[COMMIT_TIME]
    r[TXN] = state[GNO]
    r[SOURCE] = state[SID]
    r[FILE] = state[FILE_NUMBER]
    r[ROW] = row
    r[PACKED] = packed
    r[BEGAN] = state[XA]
    r[HIDES] = hides


@njit(cache=True, nogil=True)
def scan(b, begin, fill, state, ids, slots, kinds, sids, records, crc_tables, scratch):
    """Scan the packets in ``b[begin:fill]``.

    Args:
        b: bytes off the wire.
        begin: start of a packet.
        fill: end of what was received.
        state: STATE_SIZE numbers, kept between calls.
        ids: open-addressed table ids (-1 is free), a power of two long.
        slots: slot of each id, or UNWANTED.
        kinds: PASS, LOOK, ASK or REFUSE for each of the 256 event types.
        sids: (n, SID_SIZE) GTID sources.
        records: (n, RECORD_SIZE) to be filled.
        crc_tables: of cdc_lib/binlog/bytes/crc32.py.
        scratch: SID_SIZE bytes.

    Returns:
        Why it ended, number of records, where the next packet starts (before the control event), and for CONTROL_EVENT, SERVER_ERROR,
        BAD_CHECKSUM, SIDS_FULL and MALFORMED the start and end of the event without its checksum, and the start of the packet
        after.
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
            if (
                length + 1 < _MAX_PAYLOAD
                or length > LONGEST_EVENT
                or (p + wire <= fill and not _join_packets(b, p, wire))
            ):
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
        # The format description has the algorithm; its checksum is verified where it is parsed.
        if state[CHECKSUM_BYTES] != 0 and kind != 15 and crc32(b, h, end, crc_tables) != u32(b, end):
            return BAD_CHECKSUM, n, p, h, end, p + wire
        # MariaDB 11.4 leaves the position of events inside a transaction at 0; artificial events have 0 as well. Those are
        # ROTATE, FORMAT_DESCRIPTION and START_ENCRYPTION.
        end_position = u32(b, h + 13)
        in_file = (
            flags & 0x20 == 0
            and kind != 27
            and kind != 41
            and (end_position != 0 or (kind != 15 and kind != 4 and kind != 164))
        )
        if in_file and end_position != 0 and (state[OFFSET] + length) & 0xFFFFFFFF != end_position:
            return MALFORMED, n, p, h, end, p + wire
        if in_file:
            _digest(b, h, end, length, state, crc_tables)
        status = take(b, h, end, 0, state, ids, slots, kinds, sids, records, n, scratch)
        if status >= 0:
            return status, n, p, h, end, p + wire
        if status == RECORDED:
            n += 1
        state[EVENTS] += 1
        if in_file:
            state[OFFSET] += length
        p += wire
