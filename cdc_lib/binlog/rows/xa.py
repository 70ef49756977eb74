"""The XA transactions of a window: which are prepared in it, and which are committed or rolled back.

The group of a prepared transaction ends in an XA_PREPARE event: one phase 1 (1: committed immediately), format 4, length of
gtrid 4, length of bqual 4, both (MySQL ``libs/mysql/binlog/event/control_events.h``, XA_prepare_event; MariaDB
``sql/log_event.h``, XA_prepare_log_event). It begins with the statement XA START on MySQL, and with a flag of the GTID event
on MariaDB. XA COMMIT and XA ROLLBACK are statements, each in a separate group, in the server's normalized spelling.

MySQL accepts formats of up to 63 bits; its statements have all of them, the event only the lower 32. So the id of a transaction
is that of its XA START, if present.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

import numpy as np

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.damaged_file import continue_after, file_of_number, hint_of_damage, hint_without_beginning
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.errors import DecodeError, UnknownEvent
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import Decision, Prepared, xid_text

_LONGEST_PART = 64
"""Maximum bytes of gtrid and of bqual, by the XA specification."""
_PART = rf"X'((?:[0-9a-fA-F]{{2}}){{0,{_LONGEST_PART}}})'"
_STATEMENT = re.compile(rf"XA (START|END|COMMIT|ROLLBACK) {_PART},{_PART},([0-9]{{1,19}})\s*")
_LARGEST_FORMAT = (1 << 63) - 1
_Id = tuple[bytes, bytes, int]
"""gtrid, bqual and format."""


class XaTransactions:
    """Collects prepared and decided transactions in the order of the stream.

    Args:
        progress: of the reading.
    """

    def __init__(self, progress: ScanProgress) -> None:
        """Start without transactions."""
        self._progress = progress
        self._started: dict[tuple[str, int], _Id] = {}
        self._events: list[Prepared | Decision] = []
        self._tables: defaultdict[tuple[int, int], set[TableName]] = defaultdict(set)

    def statement(self, text: str) -> None:
        """Handle an XA statement.

        Raises:
            DecodeError: it has not the server's spelling, or is not valid at this position.
        """
        read = _read(text)
        if read is None or not self._fits(*read):
            context = self._progress.error_context()
            raise UnknownEvent(
                f"an XA statement that is not understood: {text[:120]!r}",
                hint=continue_after(context),
                **context,
            )
        verb, xid = read
        state = self._progress.state
        if verb == "START":
            state[packets.XA] = state[packets.OFFSET]
            self._started = {self._position(): xid}
        elif verb != "END":
            self._decide(_text(xid), committed=verb == "COMMIT")
            packets.end_transaction(state)

    def _fits(self, verb: str, xid: _Id) -> bool:
        """Whether a statement is valid here: only XA END is inside a transaction, which must be its own."""
        # A COMMIT or ROLLBACK inside the transaction itself would have an unknown effect on its rows.
        return self._started_as(xid) == xid if verb == "END" else self._progress.state[packets.XA] == 0

    def _started_as(self, xid: _Id) -> _Id:
        """Return the id of the transaction's XA START, or ``xid`` if it has none."""
        return self._started.get(self._position(), xid)

    def _position(self) -> tuple[str, int]:
        return self._progress.file, int(self._progress.state[packets.XA])

    def prepare(self, body: bytes) -> None:
        """Handle an XA_PREPARE event, which ends its group; ``body`` is without header and checksum.

        Raises:
            DecodeError: a length is wrong, or the beginning of the transaction was not seen.
        """
        state, context = self._progress.state, self._progress.error_context()
        gtrid, bqual = (int.from_bytes(body[at : at + 4], "little") for at in (5, 9))
        if len(body) < 13 or max(gtrid, bqual) > _LONGEST_PART or len(body) != 13 + gtrid + bqual or body[0] > 1:
            raise DecodeError(
                "an XA_PREPARE event does not follow the format",
                hint=hint_of_damage(context),
                **context,
            )
        prepared = (body[13 : 13 + gtrid], body[13 + gtrid :], int.from_bytes(body[1:5], "little"))
        started = self._started_as(prepared)
        xid = _text(started)
        if state[packets.XA] == 0:
            raise DecodeError(
                f"an XA PREPARE of {xid} without the beginning of its transaction",
                hint=hint_without_beginning(context),
                **context,
            )
        if prepared != (*started[:2], started[2] & 0xFFFFFFFF):
            raise DecodeError(
                f"an XA PREPARE of another transaction than {xid}, which began",
                hint=hint_of_damage(context),
                **context,
            )
        began = Position(self._progress.file, int(state[packets.XA]))
        self._events.append(Prepared(xid, began, self._progress.position, gtid=self._progress.gtid))
        if body[0] == 1:
            self._decide(xid, committed=True)
        packets.end_transaction(state)

    def touch(self, table: TableName, records: np.ndarray) -> None:
        """Record the transactions of a captured table's row events; ``records`` is of frame.scan."""
        for number, began in np.unique(records[:, [packets.FILE, packets.BEGAN]], axis=0):
            self._tables[int(number), int(began)].add(table)

    def finish(self) -> None:
        """Write the window's XA transactions into its summary.

        A transaction that is prepared and decided in this window is left out if it has no row of a captured table. One that was
        rolled back stays: a later commit of its id may be of the same transaction (see :mod:`cdc_lib.model.xa_settlement`).

        Raises:
            DecodeError: rows belong to an XA transaction that ended in another way.
        """
        self._check_all_ended()
        opened: dict[str, tuple[int, Prepared]] = {}
        kept: dict[int, Prepared | Decision] = {}
        for index, event in enumerate(self._events):
            if isinstance(event, Prepared):
                tables = self._tables.get((event.start.file_number, event.start.offset), ())
                prepared = replace(event, tables=tuple(sorted(tables)))
                opened[event.xid] = (index, prepared)
                kept[index] = prepared
                continue
            here = opened.pop(event.xid, None)
            if here is not None and not here[1].tables:
                del kept[here[0]]
            else:
                kept[index] = event
        summary = self._progress.summary
        summary.prepared = tuple(event for event in kept.values() if isinstance(event, Prepared))
        summary.xa_decisions = tuple(event for event in kept.values() if isinstance(event, Decision))

    def _decide(self, xid: str, *, committed: bool) -> None:
        progress = self._progress
        self._events.append(Decision(xid, progress.position, progress.commit_time, progress.gtid, committed))

    def _check_all_ended(self) -> None:
        ended = {(e.start.file_number, e.start.offset) for e in self._events if isinstance(e, Prepared)}
        for number, began in self._tables:
            if (number, began) not in ended:
                file = file_of_number(self._progress.file, int(number))
                context = {**self._progress.error_context(), "file": file, "offset": began}
                raise DecodeError(
                    "an XA transaction that does not end in XA PREPARE",
                    hint=continue_after(context),
                    **context,
                )


def _read(text: str) -> tuple[str, _Id] | None:
    """Return verb and id of a statement; None if it has not the server's spelling."""
    match = _STATEMENT.fullmatch(text)
    if match is None or int(match[4]) > _LARGEST_FORMAT:
        return None
    return match[1], (bytes.fromhex(match[2]), bytes.fromhex(match[3]), int(match[4]))


def _text(xid: _Id) -> str:
    gtrid, bqual, number = xid
    return xid_text(number, gtrid, bqual)
