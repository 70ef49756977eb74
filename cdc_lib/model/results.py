"""Results of the pipeline's steps: small enough for logs and XCom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import QuarantinedTable, QuarantineRecord
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The result of draining one unit.

    Args:
        unit_id: the window's or snapshot task's id.
        batches: batches that this call wrote; 0 when all existed already.
        rows: rows in the batches that this call wrote; if all existed already, in those that it found.
        bytes: bytes of their files.
        events: binlog events read.
        seconds: wall clock time.
        quarantined: tables with a fault, whose rows the batches leave out.
    """

    unit_id: str
    batches: int
    rows: int
    bytes: int
    events: int
    seconds: float
    quarantined: tuple[QuarantinedTable, ...] = ()


def result_of(unit_id: str, manifests: list[Manifest], seconds: float, *, written: int) -> DrainResult:
    """Return the result of draining a unit, from the manifests of its batches."""
    return DrainResult(
        unit_id=unit_id,
        batches=written,
        rows=sum(manifest.rows for manifest in manifests),
        bytes=sum(manifest.bytes for manifest in manifests),
        events=sum(manifest.events for manifest in manifests),
        seconds=seconds,
        quarantined=tuple(one for manifest in manifests for one in manifest.quarantined),
    )


@dataclass(frozen=True, slots=True)
class AckResult:
    """How far an ack moved a cursor.

    Args:
        consumer: consumer of the cursor.
        start: position before the ack.
        stop: position after it.
        windows: windows acknowledged.
        chunks: snapshot chunks acknowledged.
        waiting: windows and snapshots in flight without a complete batch yet.
        quarantined: tables that this ack has quarantined.
    """

    consumer: str
    start: Position
    stop: Position
    windows: int
    chunks: int
    waiting: int
    quarantined: tuple[QuarantineRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """The current position and lag of one consumer of the batches; the lake is one.

    Args:
        name: name of the consumer.
        epoch: epoch of its position.
        position: everything before it is acknowledged.
        pending_windows: windows that it has not acknowledged.
        lag_seconds: age of the oldest of them; 0 when there is none.
        holding: how many of them are past their retention and kept only for this consumer.
        holder: who holds the subscription; empty if it is free, and for the lake.
        moved_at: when its cursor moved last.
    """

    name: str
    epoch: int
    position: Position
    pending_windows: int
    lag_seconds: float
    holding: int
    holder: str
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class ResnapshotPreview:
    """What a new snapshot of a table does.

    Args:
        table: ``database.table``.
        keyed: whether the source table has a key; without one its list of changes in the lake restarts.
        reading: whether a snapshot of it is running, which is then dropped.
        quarantined: whether it is quarantined, which ends then.
    """

    table: TableName
    keyed: bool
    reading: bool
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Unanswered:
    """What could not be asked for the status of a source.

    Args:
        who: the server or the store.
        code: of the error.
        what: why.
        hint: what to do about it.
    """

    who: Literal["server", "store"]
    code: str
    what: str
    hint: str


@dataclass(frozen=True, slots=True)
class LocatedPosition:
    """The result of a search for a binlog position.

    Args:
        checkpoint: the located checkpoint.
        binlog_end: end of the binlog.
        bytes_to_end: bytes between the position and the end of the binlog.
        cursor: position of the drain cursor; None before the first plan, or on another server.
        bytes_to_cursor: bytes between the position and the cursor; negative if the position is after it; None without a cursor, and where the
            server no longer has the cursor's file.
    """

    checkpoint: BinlogCheckpoint
    binlog_end: Position
    bytes_to_end: int
    cursor: Position | None
    bytes_to_cursor: int | None

    @property
    def is_after_cursor(self) -> bool:
        """Whether a move there leaves changes out."""
        return self.cursor is not None and self.checkpoint.position > self.cursor
