"""A window is a range of the binlog that is fixed before it is read.

Law 1: its id derives from its bounds alone, never from a run id or a clock.
Law 2: windows tile the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
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
class TaskRange:
    """A range of keys of a snapshot, read by one drain task: the keys after ``after``, up to ``last`` and this one.

    Args:
        after: key in the text form of ``cdc_lib/snapshot/chunks.py``; None: from the least key on.
        last: key in the same form; None: up to the greatest key.
        chunks: number of acknowledged chunks.
        complete: whether the last chunk of the range is among them.
    """

    after: tuple[str, ...] | None
    last: tuple[str, ...] | None
    chunks: int = 0
    complete: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotTask:
    """One table to be read by SELECT in chunks; each chunk is a batch.

    Law: the ranges of a divided snapshot tile the keys and never change. A chunk belongs to one range for ever.

    Args:
        source: name of the source.
        epoch: epoch in which the snapshot was requested.
        snapshot_id: id of the snapshot; derived from the position at the time of the request.
        database: schema of the table at the source.
        table: name of the table at the source.
        chunks: number of acknowledged chunks.
        complete: whether the last chunk is among them. A complete task with no chunks was dropped.
        selection: the rows that are read; None for the whole table.
        ranges: of a divided snapshot, in key order; empty if one drain task reads the table.
        range_key: the key's columns when it was divided, each with its kind and collation; empty without ranges.
        range_number: the unit of one range: which one, counted from 0. None in cursors.
        to_divide: whether the next plan decides about ranges; nothing is read before.
    """

    source: str
    epoch: int
    snapshot_id: str
    database: str
    table: str
    chunks: int = 0
    complete: bool = False
    selection: RowSelection | None = None
    ranges: tuple[TaskRange, ...] = ()
    range_key: tuple[str, ...] = ()
    range_number: int | None = None
    to_divide: bool = False

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def id(self) -> str:
        """Id of this task, unique in a source."""
        number = "" if self.range_number is None else f"-range-{self.range_number:03d}"
        return f"snapshot-{self.snapshot_id}-{self.name}{number}"

    @property
    def title(self) -> str:
        """What is read, for people."""
        what = self.name if self.selection is None else self.selection.text
        return what if self.range_number is None else f"{what}, range {self.range_number + 1} of {len(self.ranges)}"

    @property
    def range(self) -> TaskRange | None:
        """The range that this unit reads; None if it reads the whole table."""
        return None if self.range_number is None else self.ranges[self.range_number]

    @property
    def parts(self) -> tuple[SnapshotTask, ...]:
        """One unit for each range, in key order; the task itself if it is not divided."""
        if not self.ranges or self.range_number is not None:
            return (self,)
        return tuple(replace(self, range_number=number) for number in range(len(self.ranges)))

    @property
    def units(self) -> tuple[SnapshotTask, ...]:
        """What drain tasks still read: the parts whose last chunk is not acknowledged."""
        if self.complete:
            return ()
        return tuple(one for one in self.parts if one.range is None or not one.range.complete)

    def divided(self, ranges: tuple[TaskRange, ...], key: tuple[str, ...]) -> SnapshotTask:
        """Return the task with ranges; without any, one drain task reads the table."""
        return replace(self, ranges=ranges, range_key=key if ranges else (), to_divide=False)

    def again(self, epoch: int, snapshot_id: str) -> SnapshotTask:
        """Return the task from its beginning in another epoch; it may be divided in another way there."""
        return SnapshotTask(
            self.source, epoch, snapshot_id, self.database, self.table, selection=self.selection,
            to_divide=self.selection is None,
        )  # fmt: skip

    def acknowledged(self, parts: Sequence[tuple[int, bool]]) -> SnapshotTask:
        """Return the task after chunks of its parts: how many each has, and whether its last chunk is among them."""
        chunks, complete = sum(count for count, _ in parts), all(last for _, last in parts)
        if not self.ranges:
            return replace(self, chunks=chunks, complete=complete)
        ranges = tuple(replace(one, chunks=n, complete=last) for one, (n, last) in zip(self.ranges, parts, strict=True))
        return replace(self, chunks=chunks, complete=complete, ranges=ranges)

    @property
    def progress(self) -> str:
        """How much is acknowledged, for people."""
        if not self.ranges:
            return f"{counted(self.chunks, 'chunk')} so far"
        done = sum(one.complete for one in self.ranges)
        return f"{counted(self.chunks, 'chunk')} so far, {done} of {counted(len(self.ranges), 'range')} complete"

    @property
    def requested_at(self) -> Point:
        """End of the binlog when it was requested, from its id: every chunk was read after it."""
        return requested_at(self.snapshot_id)

    @property
    def cancelled(self) -> bool:
        """Whether it was dropped, because a later snapshot or the binlog provides the table's rows."""
        return self.complete and self.chunks == 0


def requested_at(snapshot_id: str) -> Point:
    """Return the end of the binlog when a snapshot was requested, from its id."""
    epoch, _, position = snapshot_id.partition("-")
    file, _, offset = position.partition("-")[0].partition(".")  # some ids end with the cursor's generation
    return Point(int(epoch), int(file), int(offset))


DrainUnit = Window | SnapshotTask
"""The work of one drain task: a window, a whole snapshot or one range of it."""
