"""The rows of a lake table that the source must have, some at a time, with their texts and hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.errors import ConfigError
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET, OP
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import RESET
from cdc_lib.read.bounds import Bound
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.snapshot import PinnedSnapshot, RowGroup
from cdc_lib.verify.changed.cell_arrays import row_hashes, row_texts, text_array
from cdc_lib.verify.changed.hash_kernel import Hashes, crc32_of_each
from cdc_lib.verify.comparability import BUCKETS, Subject

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_WRITTEN = (EPOCH, BINLOG, OFFSET)


@dataclass(frozen=True)
class LakeBatch:
    """Some rows of a lake table.

    Args:
        subject: what is compared.
        rows: the columns that were read.
        texts: of each compared column.
        cuts: the last value of the key's first column in each range but the last.
    """

    subject: Subject
    rows: pa.Table
    texts: Sequence[pa.Array]
    cuts: Sequence[int]

    @cached_property
    def hashes(self) -> Hashes:
        """The hash of each row."""
        return row_hashes(self.subject.cells, self.texts)

    @cached_property
    def key_texts(self) -> list[pa.Array]:
        """The texts of each column of the key."""
        cells = self.subject.cells
        return [self.texts[next(i for i, cell in enumerate(cells) if cell is key)] for key in self.subject.keys]

    @cached_property
    def names(self) -> pa.Array:
        """The identifying name of each row that has a key."""
        return row_texts(self.subject.keys, self.key_texts)

    @cached_property
    def weights(self) -> Numbers:
        """How often each row counts: without a key the table holds changes, and a delete cancels an insert."""
        if self.subject.how != "copies":
            return np.ones(len(self.hashes), np.int64)
        return np.where(_mask(pc.equal(self.rows.column(OP), DELETE)), -1, 1)

    @cached_property
    def parts(self) -> Numbers:
        """The number of each row's part: of its range, times the number of buckets, and of its bucket."""
        hashes = self.hashes if self.subject.how == "copies" else crc32_of_each(self.names)
        buckets = BUCKETS[self.subject.how]
        found: Numbers = self._ranges * buckets + hashes % buckets
        return found

    @property
    def _ranges(self) -> Numbers:
        if self.subject.how != "ranges" or not self.cuts:
            return np.zeros(len(self.hashes), np.int64)
        return ranges_of(self.rows.column(_named(self.rows.schema.names, self.subject.first)), self.cuts)

    def written(self) -> list[Point]:
        """Return the order key of each row's last change."""
        return [Point(*at) for at in zip(*(self.rows.column(name).to_pylist() for name in _WRITTEN), strict=True)]

    def filtered(self, kept: Mask) -> LakeBatch:
        """Return some of the rows."""
        mask = pa.array(kept)
        return LakeBatch(self.subject, self.rows.filter(mask), [one.filter(mask) for one in self.texts], self.cuts)


class LakeBatches:
    """Reads one lake table at one snapshot. Threads may read its row groups at once.

    Args:
        snapshot: of the lake table.
        subject: what is compared.
        cuts: the last value of the key's first column in each range but the last.
        order_keys: whether the order key of each row is read.

    Raises:
        ConfigError: only Spark can read the rows to compare.
    """

    def __init__(
        self, snapshot: PinnedSnapshot, subject: Subject, cuts: Sequence[int] = (), *, order_keys: bool = False
    ) -> None:
        if subject.folded and subject.how != "copies":
            raise ConfigError(
                "every change is kept (append), and Spark finds the last one of each key",
                hint="cdc verify reads the table with Spark.",
                table=subject.schema.name,
            )
        self._snapshot, self._subject, self._cuts = snapshot, subject, cuts
        known = snapshot.columns.names
        self._compared = [_named(known, cell.column.name) for cell in subject.cells]
        self._constants = {_named(known, name): value for name, value in subject.constants.items()}
        more = [*self._constants, *([snapshot.mark.name] if snapshot.mark is not None else [])]
        more += [OP] if subject.how == "copies" else []
        more += ORDER if subject.folded else _WRITTEN if order_keys or subject.kept_before is not None else ()
        self._columns: tuple[ReadColumn, ...] = snapshot.columns.choose(dict.fromkeys([*self._compared, *more]))

    def groups(self, least: int | None = None, greatest: int | None = None) -> Iterator[RowGroup]:
        """Yield the row groups that may have rows to compare.

        Args:
            least: the key's first column is not less; None is no bound.
            greatest: it is not greater; None is no bound.
        """
        snapshot = self._snapshot
        if not snapshot.has_key:
            for file in snapshot.files:
                yield from snapshot.groups(file)
            return
        for file in snapshot.files:
            if self._may_have(snapshot.file_bounds(file), least, greatest):
                yield from (
                    group for group, bounds in snapshot.row_groups(file) if self._may_have(bounds, least, greatest)
                )

    def _may_have(self, bounds: Sequence[Bound], least: int | None, greatest: int | None) -> bool:
        if self._snapshot.mode == "scd2" and self._snapshot.mark is not None and not bounds[-1].may_have(1):
            return False
        constants = zip(bounds, self._constants.values(), strict=False)
        if not all(one.may_have(value.encode()) for one, value in constants):
            return False
        first = bounds[len(self._constants)]
        if first.nulls or not isinstance(first.lower, int) or not isinstance(first.upper, int):
            return True
        return (least is None or first.upper >= least) and (greatest is None or first.lower <= greatest)

    def last_reset(self) -> tuple[int, ...] | None:
        """Return the order key of the last change that voids all earlier ones; None if there is none."""
        if not self._subject.folded:
            return None
        columns = self._snapshot.columns.choose(dict.fromkeys([OP, *ORDER, *self._constants]))
        last: tuple[int, ...] | None = None
        for group in self.groups():
            for table in self._snapshot.batches(group, columns):
                resets = table.filter(pa.array(_mask(pc.equal(table.column(OP), RESET)) & self._own(table)))
                if resets.num_rows:
                    orders = zip(*(resets.column(name).to_pylist() for name in ORDER), strict=True)
                    last = max([*orders, *([last] if last is not None else [])])
        return last

    def read(self, group: RowGroup, after: tuple[int, ...] | None) -> Iterator[LakeBatch]:
        """Yield the rows of a row group.

        Args:
            group: the row group.
            after: changes up to this order key do not count; None if all count.
        """
        for table in self._snapshot.batches(group, self._columns):
            kept = self._kept(table, after)
            rows = table if kept.all() else table.filter(pa.array(kept))
            if rows.num_rows:
                pairs = zip(self._subject.cells, self._compared, strict=True)
                texts = [text_array(cell, rows.column(name)) for cell, name in pairs]
                yield LakeBatch(self._subject, rows, texts, self._cuts)

    def _kept(self, table: pa.Table, after: tuple[int, ...] | None) -> Mask:
        """Return which rows the source must have."""
        kept, mark = self._own(table), self._snapshot.mark
        if mark is not None:
            marked = _mask(table.column(mark.name))
            kept &= marked if self._snapshot.mode == "scd2" else ~marked
        if after is not None:
            kept &= _after(table, ORDER, after)
        before = self._subject.kept_before
        if before is not None:
            # At it or after it: offsets are whole numbers.
            kept &= _after(table, _WRITTEN, (before.epoch, before.file, before.offset - 1))
        return kept

    def _own(self, table: pa.Table) -> Mask:
        """Return which rows are of the source table."""
        own = np.ones(table.num_rows, np.bool_)
        for name, value in self._constants.items():
            own &= _mask(pc.equal(table.column(name), value))
        return own


def ranges_of(first: pa.ChunkedArray, cuts: Sequence[int]) -> Numbers:
    """Return the number of each row's range: how many cuts are less than the key's first column, 0 for null.

    Args:
        first: the key's first column.
        cuts: in ascending order.
    """
    unsigned = pa.types.is_decimal(first.type)
    kind = pa.uint64() if unsigned else pa.int64()
    values = pc.fill_null(first.cast(kind), 0 if unsigned else -(2**63)).to_numpy()
    found: Numbers = np.searchsorted(np.array(cuts, kind.to_pandas_dtype()), values, side="left")
    return found


def _after(table: pa.Table, names: Sequence[str], order: Sequence[int]) -> Mask:
    """Return which rows have a greater order key."""
    found = np.zeros(table.num_rows, np.bool_)
    for name, value in reversed(list(zip(names, order, strict=True))):
        column = table.column(name)
        found = _mask(pc.greater(column, value)) | (_mask(pc.equal(column, value)) & found)
    return found


def _mask(found: pa.ChunkedArray) -> Mask:
    mask: Mask = pc.fill_null(found, False).to_numpy()
    return mask


def _named(names: Sequence[str], name: str) -> str:
    """Return a column's name as the lake table writes it."""
    return next(one for one in names if one.lower() == name.lower())
