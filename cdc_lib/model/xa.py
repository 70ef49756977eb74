"""XA transactions: prepared at one position and decided at a later one, perhaps in another window or file.

The changes of a prepared transaction take effect at the position of its XA COMMIT; after an XA ROLLBACK they never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.gtid import is_at_or_after
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction that is prepared in a window.

    Args:
        xid: its id, as the server writes it after XA COMMIT: ``X'<gtrid>',X'<bqual>',<format>``.
        start: where it began; its rows have file and offset of this position, and are numbered in order.
        position: where its XA PREPARE starts.
        tables: captured tables with rows in it, sorted.
        gtid: GTID of the XA PREPARE; empty without one.
    """

    xid: str
    start: Position
    position: Position
    tables: tuple[TableName, ...] = ()
    gtid: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """An XA COMMIT or XA ROLLBACK in a window.

    Args:
        xid: id of the transaction.
        position: where its event starts; on commit, the position of the rows in the order of changes.
        time: commit time (UTC).
        gtid: GTID of the decision, not of the rows; empty without one.
        committed: XA COMMIT, else XA ROLLBACK.
    """

    xid: str
    position: Position
    time: datetime
    gtid: str
    committed: bool


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A prepared transaction that is not decided.

    Args:
        manifest: key of the manifest of the batch that holds its rows; the batch must stay until the decision is merged.
        prepared: the transaction.
        epoch: epoch of that batch.
        server: server that it was read from.
    """

    manifest: str
    prepared: Prepared
    epoch: int
    server: ServerIdentity

    def is_read_again(self, epoch: int, server: ServerIdentity, start: Position, first: str) -> bool:
        """Whether its XA PREPARE is at or after the start of a window of another epoch: by position, or at another server by GTIDs.

        The previous epoch was read beyond the start of this one, so the XA PREPARE is read again. A decision before it belongs to
        an earlier transaction with the same id.

        Args:
            epoch: of the window.
            server: that the window was read from.
            start: of the window.
            first: GTID of the window's first transaction; empty without one.
        """
        return self.epoch != epoch and is_from(self.prepared, self.server.is_same_server(server), start, first)


def is_from(event: Prepared | Decision, same_server: bool, start: Position, first: str) -> bool:
    """Whether an event is at or after the start of a window: by position on the window's server, else by GTIDs.

    Args:
        event: of a window of another epoch.
        same_server: whether both windows were read from one server.
        start: of the window.
        first: GTID of the window's first transaction; empty without one.
    """
    return start <= event.position if same_server else is_at_or_after(event.gtid, first)


def xid_text(format_id: int, gtrid: bytes, bqual: bytes) -> str:
    """Return an id in its canonical text form."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"
