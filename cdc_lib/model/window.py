"""A window is a range of the binlog that is fixed before it is read.

Law 1: its id derives from its bounds alone, never from a run id or a clock.
Law 2: windows tile the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.errors import ConfigError
from cdc_lib.model.position import Point, Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class Window:
    """``[start, stop)`` of one server's binlog, both on transaction boundaries.

    Args:
        source: name of the source.
        epoch: counts failovers and rewinds of the source, from 1.
        start: position of its first byte.
        stop: position of the first byte after it.
    """

    source: str
    epoch: int
    start: Position
    stop: Position

    def __post_init__(self) -> None:
        """Refuse a window that ends before it starts."""
        if self.stop < self.start:
            raise ConfigError(f"a window cannot end at {self.stop} before it starts at {self.start}")

    @property
    def id(self) -> str:
        """Sorts as the stream does: ``000001-000012.000000000004-000013.000000000126``."""
        return f"{self.epoch:06d}-{self.start.sortable}-{self.stop.sortable}"


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """One table to be read by SELECT in chunks; each chunk is a batch.

    Args:
        source: name of the source.
        epoch: epoch in which the snapshot was requested.
        snapshot_id: id of the snapshot; derived from the position at the time of the request.
        database: schema of the table at the source.
        table: name of the table at the source.
        chunks: number of acknowledged chunks.
        complete: whether the last chunk is among them. A complete task with no chunks was dropped.
        selection: the rows that are read; None for the whole table.
    """

    source: str
    epoch: int
    snapshot_id: str
    database: str
    table: str
    chunks: int = 0
    complete: bool = False
    selection: RowSelection | None = None

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def id(self) -> str:
        """Id of this task, unique in a source."""
        return f"snapshot-{self.snapshot_id}-{self.name}"

    @property
    def requested_at(self) -> Point:
        """End of the binlog when it was requested, from its id: every chunk was read after it."""
        epoch, _, position = self.snapshot_id.partition("-")
        file, _, offset = position.partition("-")[0].partition(".")  # some ids end with the cursor's generation
        return Point(int(epoch), int(file), int(offset))

    @property
    def cancelled(self) -> bool:
        """Whether it was dropped, because a later snapshot or the binlog provides the table's rows."""
        return self.complete and self.chunks == 0


DrainUnit = Window | SnapshotTask
"""The work of one drain task."""
