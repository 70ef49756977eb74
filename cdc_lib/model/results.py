"""What the steps of the pipeline answer: small, and fit to be logged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.failed_table import StoppedTable
from cdc_lib.model.foreign import ForeignCommit
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import LaggingTable, QuarantinedTable, QuarantineRecord
from cdc_lib.model.retention_forecast import RetentionForecast
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified


@dataclass(frozen=True, slots=True)
class DrainResult:
    """What draining one unit left behind.

    Args:
        unit_id: the window's or snapshot task's id.
        batches: batches that this call wrote; 0 when all were there already.
        rows: rows in the unit's batches that this call wrote or found.
        bytes: bytes of their files.
        events: binlog events read.
        seconds: wall clock time.
        quarantined: tables that are at fault, whose rows the batches leave out.
    """

    unit_id: str
    batches: int
    rows: int
    bytes: int
    events: int
    seconds: float
    quarantined: tuple[QuarantinedTable, ...] = ()


def result_of(unit_id: str, manifests: list[Manifest], seconds: float, *, written: int) -> DrainResult:
    """Return what draining a unit left behind, from the manifests of its batches."""
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
        consumer: whose cursor.
        start: where it was.
        stop: where it is.
        windows: windows acknowledged.
        chunks: snapshot chunks acknowledged.
        waiting: windows and snapshots in flight for which there is no evidence yet.
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
    """Where one consumer of the batches stands, the lake included.

    Args:
        name: of the consumer.
        epoch: of its position.
        position: everything before it is acknowledged.
        pending_windows: windows that it has not acknowledged.
        lag_seconds: how long the oldest of them has been there; 0 when there is none.
        holding: how many of them are old enough to be collected: they stay for this consumer.
        holder: who has the subscription; empty when nobody has, and for the lake.
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
class Gauges:
    """The figures of a source that are watched.

    Args:
        retention_hours: until the server may purge what is drained next; None when nothing purges it, or nobody can say.
        lag_seconds: age of the oldest change that is not in the lake, 0 when all are; None before the first cut. It grows while
            the server cannot be asked.
        warning: what is wrong with the forecast, and what mends it; empty when it is long enough.
    """

    retention_hours: float | None
    lag_seconds: float | None
    warning: str


@dataclass(frozen=True, slots=True)
class ResnapshotPreview:
    """What a new snapshot of a table does.

    Args:
        table: ``database.table``.
        keyed: whether the source table has a key; without one its list of changes begins again in the lake.
        reading: whether a snapshot of it is going on, which is given up.
    """

    table: TableName
    keyed: bool
    reading: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Where a source stands.

    Args:
        source: its name.
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        binlog_end: end of the binlog; None when the server cannot be reached.
        lag_seconds: age of the oldest change that is not in the lake, 0 when all are; None before the first cut.
        pending_bytes: bytes of binlog between the lake cursor and the end of the binlog, those of this epoch alone; None when unknown.
        last_batches: manifests of the last windows, oldest first.
        last_cut: what the lake shows; None before the first merge.
        consumers: every consumer of the batches.
        lagging: tables that are quarantined, or released and not in the lake again yet.
        retention: how long the server keeps what is drained next; None before the first plan, or when it cannot be asked.
        retention_warning: what is wrong with that, and what mends it; empty when it is long enough.
        pending_windows: windows of earlier epochs that the lake does not have; it goes over to this one when it has them.
        verified: the last comparison of each lake table with its source.
        stopped: lake tables at which the last merge stopped.
        missing: a cursor, or a batch that the lake needs next, which is not there, with what leads out.
        pending_snapshots: snapshots that are not whole in the lake.
        foreign: commits of other writers since the last clean comparison or new snapshot of their tables.
    """

    source: str
    drain: Cursor | None
    lake: Cursor | None
    binlog_end: Position | None
    lag_seconds: float | None
    pending_bytes: int | None
    last_batches: tuple[Manifest, ...]
    last_cut: Cut | None
    consumers: tuple[ConsumerState, ...] = ()
    lagging: tuple[LaggingTable, ...] = ()
    retention: RetentionForecast | None = None
    retention_warning: str = ""
    pending_windows: int = 0
    verified: tuple[Verified, ...] = ()
    stopped: tuple[StoppedTable, ...] = ()
    foreign: tuple[ForeignCommit, ...] = ()
    missing: tuple[str, ...] = ()
    pending_snapshots: int = 0


@dataclass(frozen=True, slots=True)
class LocatedPosition:
    """A place that was sought.

    Args:
        checkpoint: what was found.
        binlog_end: end of the binlog.
        bytes_to_end: binlog between the place and the end of the binlog.
        cursor: where the drain cursor is; None before the first plan, or on another server.
        bytes_to_cursor: binlog between the place and the cursor; negative when the place lies after it; None without a cursor.
    """

    checkpoint: BinlogCheckpoint
    binlog_end: Position
    bytes_to_end: int
    cursor: Position | None
    bytes_to_cursor: int | None
