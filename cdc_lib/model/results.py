"""What the steps of the pipeline answer: small, and fit to be logged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.aside import Aside, SetAside, Standing
from cdc_lib.model.batch import Manifest
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.merge import Cut
from cdc_lib.model.place import Place
from cdc_lib.model.position import Position
from cdc_lib.model.runway import Runway
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
        aside: tables whose rows the batches leave out.
    """

    unit_id: str
    batches: int
    rows: int
    bytes: int
    events: int
    seconds: float
    aside: tuple[SetAside, ...] = ()


@dataclass(frozen=True, slots=True)
class AckResult:
    """How far an ack moved a cursor.

    Args:
        consumer: whose cursor.
        start: where it stood.
        stop: where it stands.
        windows: windows acknowledged.
        chunks: snapshot chunks acknowledged.
        waiting: windows and snapshots in flight for which there is no evidence yet.
        aside: tables that this ack has set aside.
    """

    consumer: str
    start: Position
    stop: Position
    windows: int
    chunks: int
    waiting: int
    aside: tuple[Aside, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """Where one consumer of the batches stands, the lake included.

    Args:
        name: of the consumer.
        epoch: of its position.
        position: everything before it is acknowledged.
        behind: windows that it has not acknowledged.
        lag_seconds: how long the oldest of them has been there; 0 when there is none.
        holding: how many of them are old enough to be collected: they stay for this consumer.
        holder: who has the subscription; empty when nobody has, and for the lake.
        moved_at: when its cursor moved last.
    """

    name: str
    epoch: int
    position: Position
    behind: int
    lag_seconds: float
    holding: int
    holder: str
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Gauges:
    """The figures of a source that are watched.

    Args:
        runway_hours: until the server may purge what is drained next; None when nothing purges it, or nobody can say.
        lag_seconds: age of the oldest change that is not in the lake, 0 when all are; None when unknown.
        warning: what is wrong with the runway, and what mends it; empty when it is long enough.
    """

    runway_hours: float | None
    lag_seconds: float | None
    warning: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new snapshot of a table does.

    Args:
        table: ``database.table``.
        keyed: whether the source table has a key; without one its list of changes begins anew in the lake.
        reading: whether a snapshot of it is going on, which is given up.
    """

    table: str
    keyed: bool
    reading: bool


@dataclass(frozen=True, slots=True)
class Status:
    """Where a source stands.

    Args:
        source: its name.
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        head: end of the binlog; None when the server cannot be reached.
        lag_seconds: age of the oldest change that is not in the lake, 0 when all are; None when unknown.
        pending_bytes: bytes of binlog between the lake cursor and the head, those of this epoch alone; None when unknown.
        last_batches: manifests of the last windows, oldest first.
        last_cut: what the lake shows; None before the first merge.
        consumers: every consumer of the batches.
        aside: tables that are set aside, or released and not in the lake anew yet.
        runway: how long the server keeps what is drained next; None before the first plan, or when it cannot be asked.
        runway_warning: what is wrong with that, and what mends it; empty when it is long enough.
        pending_windows: windows of earlier epochs that the lake does not have; it goes over to this one when it has them.
        verified: the last comparison of each lake table with its source.
    """

    source: str
    drain: Cursor | None
    lake: Cursor | None
    head: Position | None
    lag_seconds: float | None
    pending_bytes: int | None
    last_batches: tuple[Manifest, ...]
    last_cut: Cut | None
    consumers: tuple[ConsumerState, ...] = ()
    aside: tuple[Standing, ...] = ()
    runway: Runway | None = None
    runway_warning: str = ""
    pending_windows: int = 0
    verified: tuple[Verified, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A place that was sought.

    Args:
        place: what was found.
        head: end of the binlog.
        to_head_bytes: binlog between the place and the head.
        cursor: where the drain cursor stands; None before the first plan, or on another server.
        back_bytes: binlog between the place and the cursor; negative when the place lies behind it; None without a cursor.
    """

    place: Place
    head: Position
    to_head_bytes: int
    cursor: Position | None
    back_bytes: int | None
