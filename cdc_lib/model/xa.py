"""XA transactions: prepared at one place of the binlog, decided at a later one, perhaps windows or files away.

What a prepared transaction changed counts from its XA COMMIT on, at the place of that statement, and not at all after an
XA ROLLBACK.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction that is prepared in a window.

    Args:
        xid: its id, as the server writes it after XA COMMIT: ``X'<gtrid>',X'<bqual>',<format>``.
        start: where it began; its rows bear file and offset of this position, and numbers in its order.
        position: where its XA PREPARE starts.
        tables: captured tables that it has rows of, sorted.
    """

    xid: str
    start: Position
    position: Position
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """An XA COMMIT or XA ROLLBACK in a window.

    Args:
        xid: of the transaction that it decides.
        position: where its event starts; the place of the rows in the order of changes when it commits.
        time: when (UTC).
        gtid: of the decision, not of the rows; empty without one.
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
        epoch: of that batch.
        server: that it was read from.
    """

    manifest: str
    prepared: Prepared
    epoch: int
    server: ServerIdentity

    def is_read_again(self, epoch: int, server: ServerIdentity, start: Position) -> bool:
        """Whether its XA PREPARE is at or after the start of a window of a later epoch, in the same binlog.

        The epoch before it was followed further than to where this one began. What is read before that XA PREPARE is
        older than it: a decision there is one of an earlier transaction that had the same id.
        """
        again = self.epoch != epoch and self.server.is_same_server(server)
        return again and start <= self.prepared.position


def xid_text(format_id: int, gtrid: bytes, bqual: bytes) -> str:
    """Return an id in the one spelling that is compared."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"
