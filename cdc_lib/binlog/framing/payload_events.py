"""Scans the events of an inflated compressed transaction, which have no packets and no checksums.

MySQL ``libs/mysql/binlog/event/control_events.h``, Transaction_payload_event: the events of one transaction after its GTID,
from BEGIN to its end, one after the other. They have the ordinary header of 19 bytes, whose end positions are meaningless.
"""

from __future__ import annotations

from numba import njit

from cdc_lib.binlog.bytes.integers import u32
from cdc_lib.binlog.framing.packets import (
    EVENTS,
    HEADER,
    IN_TRANSACTION,
    LONGEST_EVENT,
    MALFORMED,
    NEED_MORE,
    NEEDED,
    RECORDED,
    RECORDS_FULL,
    take,
)


@njit(cache=True, nogil=True)
def scan_uncompressed(b, begin, fill, origin, state, ids, slots, kinds, sids, records, scratch):
    """Scan the events in ``b[begin:fill]``.

    Args:
        b: inflated bytes.
        begin: start of an event.
        fill: end of what was inflated.
        origin: offset in the payload of ``b[0]``; numbers the rows.
        state: as of :func:`cdc_lib.binlog.framing.packets.scan`, as is all that follows.
        ids: table ids.
        slots: of the tables.
        kinds: REFUSE for the types that are not valid in a transaction.
        sids: GTID sources.
        records: to be filled.
        scratch: of frame.scan.

    Returns:
        Why it ended, number of records, where the next event starts, and where the event at fault or to be looked at ends.
    """
    n = 0
    p = begin
    while True:
        if n == records.shape[0]:
            return RECORDS_FULL, n, p, p
        if p + HEADER > fill:
            state[NEEDED] = HEADER
            return NEED_MORE, n, p, p
        length = u32(b, p + 9)
        # A payload has no events after the end of its transaction.
        if length < HEADER or length > LONGEST_EVENT or state[IN_TRANSACTION] == 0:
            return MALFORMED, n, p, p + HEADER
        if p + length > fill:
            state[NEEDED] = length
            return NEED_MORE, n, p, p
        end = p + length
        status = take(b, p, end, origin + p, state, ids, slots, kinds, sids, records, n, scratch)
        if status >= 0:
            return status, n, p, end
        if status == RECORDED:
            n += 1
        state[EVENTS] += 1
        p = end
