"""Leaves changes of erased rows out of what is drained again: after a rewind, a failover, or for a backfill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.model.erasure import Erasure
from cdc_lib.model.gtid import GtidSet, was_committed_at
from cdc_lib.model.manifest import BINLOG, GTID, OFFSET, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName

ErasuresOf = Callable[[TableName], Sequence[Erasure]]

_CLOCKS_APART = timedelta(days=1)
"""By how much the clocks of two servers of a source differ at most."""


@dataclass(frozen=True, slots=True)
class ErasedRows:
    """The erased rows of a source, for the windows of one epoch of a server.

    Args:
        erasures: of a table.
        epoch: of the windows.
        identity: the server that wrote them.
        left_out: how many changes were, of each row group that had some.
    """

    erasures: ErasuresOf
    epoch: int
    identity: ServerIdentity
    left_out: list[int] = field(default_factory=list)

    def without(self, schema: TableSchema, rows: pa.Table) -> pa.Table:
        """Return changes of a table without those of erased rows from before their erasure.

        Args:
            schema: of the table.
            rows: with the change columns.
        """
        if schema.primary_key and rows.num_rows and (known := self.erasures(schema.name)):
            for one in self._later(known, rows):
                erased = erased_among(one, rows, schema.primary_key, self._is_before(one, rows))
                if erased.any():
                    self.left_out.append(int(erased.sum()))
                    rows = rows.filter(pa.array(~erased))
        return rows

    def _later(self, known: Sequence[Erasure], rows: pa.Table) -> Iterator[Erasure]:
        """Yield the erasures that may have come later than one of the changes: after years, few of many."""
        files, offsets = (rows.column(name).to_numpy() for name in (BINLOG, OFFSET))
        first = Point(self.epoch, int(files.min()), int(offsets[files == files.min()].min()))
        earliest = pc.min(rows.column(TS)).as_py()
        yield from (one for one in known if may_be_later(one, first, earliest))

    def _is_before(self, erasure: Erasure, rows: pa.Table) -> NDArray[np.bool_]:
        """Return which changes were committed before an erasure."""
        if self.epoch < erasure.epoch:
            return np.ones(rows.num_rows, np.bool_)
        place = is_before(rows, erasure)
        if self.epoch == erasure.epoch:
            return place
        # Positions and GTIDs may begin again after a reset of the server, and clocks of two servers differ: only what is
        # earlier by both counts. What another server committed has its time, so there the GTID decides.
        found = _is_earlier(rows, erasure.at)
        if not erasure.gtid_set:
            return found & place if self.identity.is_same_server(erasure.identity) else found
        executed, of_others = _transactions(erasure, rows.column(GTID))
        return executed & (found | (of_others & _is_earlier(rows, erasure.at + _CLOCKS_APART)))


def may_be_later(erasure: Erasure, first: Point, earliest: datetime | None) -> bool:
    """Whether an erasure may have come later than one of some changes.

    Args:
        erasure: of the table.
        first: position of the first change.
        earliest: time of the earliest one; None if it is not known.
    """
    is_early = earliest is None or earliest < erasure.at + _CLOCKS_APART
    return first <= erasure.point or (erasure.epoch < first.epoch and is_early)


def _transactions(erasure: Erasure, gtids: pa.ChunkedArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of which transactions changes are.

    Returns:
        Whether the server that was asked had executed it before the erasure, true without a GTID; and whether another server
        committed it first, false without one.
    """
    flavor = erasure.identity.flavor
    executed = GtidSet.parse(flavor, erasure.gtid_set)
    asked = {name: GtidSet.parse(flavor, name) for name in pc.unique(gtids).to_pylist() if name}
    later = [name for name, one in asked.items() if executed.widened(one).lacks(one)]
    of_others = [name for name in asked if not was_committed_at(erasure.identity, name)]
    return ~_is_one_of(gtids, later), _is_one_of(gtids, of_others)


def _is_one_of(gtids: pa.ChunkedArray, names: Sequence[str]) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(pc.is_in(gtids, value_set=pa.array(names, pa.string())), False), np.bool_)


def _is_earlier(rows: pa.Table, at: datetime) -> NDArray[np.bool_]:
    """Return which changes have an earlier time than another; false for those without one."""
    times = rows.column(TS)
    found: NDArray[np.bool_] = pc.fill_null(pc.less(times, pa.scalar(at, times.type)), False).to_numpy()
    return found


def is_before(rows: pa.Table, erasure: Erasure) -> NDArray[np.bool_]:
    """Return which changes have a position before that of an erasure, in one epoch of one server; or are rows that were read there."""
    file, offset, row = (rows.column(name).to_numpy() for name in (BINLOG, OFFSET, ROW))
    _, at_file, at_offset = erasure.point
    is_there: NDArray[np.bool_] = (offset < at_offset) | ((offset == at_offset) & (row <= SNAPSHOT_ROW))
    before: NDArray[np.bool_] = (file < at_file) | ((file == at_file) & is_there)
    return before


def erased_among(erasure: Erasure, rows: pa.Table, key: Sequence[str], before: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of the rows from before an erasure are erased.

    Args:
        erasure: the keys.
        rows: with the columns of the key.
        key: these columns, in the order of the source's key.
        before: which rows are from before it.
    """
    found = before.copy()
    if found.any():
        keys = rows.select(key).filter(pa.array(found))
        found[found] = erasure.has(zip(*(column.to_pylist() for column in keys.columns), strict=True))
    return found
