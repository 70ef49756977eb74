"""Where a change is in the binlog, and what is known of a window before it is decoded again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName


class Place(NamedTuple):
    """Where a change is: number of the binlog file, offset of the event, number of the row in it."""

    file: int
    offset: int
    row: int


class StoredChange(NamedTuple):
    """One change of a batch.

    Args:
        place: its order key, without the epoch.
        op: of the change.
        gtid: of its transaction; None without one.
        cells: in the order of the file's schema.
        part: path of its file.
        schema: of the file.
    """

    place: Place
    op: str
    gtid: str | None
    cells: tuple[Any, ...]
    part: str
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class KnownOfWindow:
    """What is known about a window before it is decoded again.

    Args:
        captured: whether the batch must have a table's changes.
        left_out: tables whose changes are not compared, and why.
        masked: whether a column's values are masked, by table and name.
        prepared: first and last place of each prepared XA transaction, in order.
    """

    captured: Callable[[TableName], bool]
    left_out: Mapping[TableName, str]
    masked: Callable[[TableName, str], bool]
    prepared: Sequence[tuple[tuple[int, int], tuple[int, int]]] = ()

    def in_prepared(self, file: int, offset: int) -> bool:
        """Whether an event belongs to a prepared XA transaction."""
        index = bisect_right(self.prepared, ((file, offset), (1 << 62, 0))) - 1
        return index >= 0 and (file, offset) <= self.prepared[index][1]
