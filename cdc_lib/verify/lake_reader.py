"""The rows of a lake table that the source must have, with their texts and hashes: all of them, a range of keys, or some keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import OrderValue, RowKey, Rows
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET, OP
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import RESET
from cdc_lib.read.bounds import Bound
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import NoSuchKey, order_value
from cdc_lib.read.lookup import Many
from cdc_lib.read.snapshot import PinnedSnapshot, RowGroup, shown
from cdc_lib.verify.cell_arrays import key_columns, row_hashes, row_texts, text_array
from cdc_lib.verify.checksums import ListedRow, Sum
from cdc_lib.verify.comparability import BUCKETS, Key, Subject
from cdc_lib.verify.hash_kernel import Hashes, crc32_of_each

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_WRITTEN = (EPOCH, BINLOG, OFFSET)


@dataclass(frozen=True)
class LakeBatch:
    """Some rows of a lake table.

    Args:
        subject: what is compared.
        rows: the order keys, the operations and the key's first column, as far as they were read.
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

    @property
    def sum(self) -> Sum:
        """The checksum of all rows."""
        return Sum(int(self.weights.sum()), int((self.weights * self.hashes).sum()))

    def listed(self) -> Iterator[ListedRow]:
        """Yield each row; without a key, each change."""
        hashes = self.hashes.tolist()
        if self.subject.how == "copies":
            yield from (
                ListedRow(str(one), one, weight) for one, weight in zip(hashes, self.weights.tolist(), strict=True)
            )
            return
        keys = zip(*(texts.to_pylist() for texts in self.key_texts), strict=True)
        for name, hashed, key in zip(self.names.to_pylist(), hashes, keys, strict=True):
            yield ListedRow(name, hashed, 1, tuple(part or "" for part in key))

    def states(self) -> Iterator[tuple[str, Sequence[str | None], int, Point]]:
        """Yield each row as :func:`cdc_lib.verify.lake.states_of` takes it; its order key was read."""
        names = self.names.to_pylist() if self.subject.how != "copies" else map(str, self.hashes.tolist())
        texts = zip(*(column.to_pylist() for column in self.texts), strict=True)
        places = zip(*(self.rows.column(name).to_pylist() for name in _WRITTEN), strict=True)
        for name, cells, weight, place in zip(names, texts, self.weights.tolist(), places, strict=True):
            yield name, cells, weight, Point(*place)

    def filtered(self, kept: Mask) -> LakeBatch:
        """Return some of the rows."""
        mask = pa.array(kept)
        return LakeBatch(self.subject, self.rows.filter(mask), [one.filter(mask) for one in self.texts], self.cuts)


class LakeReader:
    """Reads one lake table at one snapshot. Threads may read its row groups at once.

    Every method raises StoreError if a file cannot be read.

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
        first = _named(known, subject.keys[0].column.name)
        self._beside = list(dict.fromkeys([first, *more]))

    def all(self, least: int | None = None, greatest: int | None = None) -> Iterator[LakeBatch]:
        """Yield all rows, some at a time.

        Args:
            least: rows whose key's first column is less may be left out; None is no bound.
            greatest: the same of those that are greater.
        """
        with translate_errors(self._subject.schema.name):
            after = self.last_reset()
            if self._snapshot.has_key and not _is_whole(self._snapshot.key.columns[len(self._constants)].type):
                least = greatest = None  # the lake has the key in another order
            for group in self.groups(least, greatest):
                yield from self.read(group, after)

    def between(self, after: Key | None, end: Key | None) -> Iterator[LakeBatch]:
        """Yield the rows whose keys are after a key, up to another one, in the lake's order of keys.

        Texts are in the order of their UTF-8 bytes there, which is not that of every collation: rows may then be in another range
        than at the source. They are looked up by key before anything is said of them, and the ranges of both sides tile all keys.

        Args:
            after: canonical texts of the key before the rows; None is no bound.
            end: canonical texts of the last key; None is no bound.

        Raises:
            ConfigError: the lake table cannot have one of the bounds as a key.
        """
        snapshot = self._snapshot
        bounds = [None if key is None else [column[0] for column in self._own_keys([key])] for key in (after, end)]
        with translate_errors(self._subject.schema.name):
            for group in self.groups(*(None if key is None else key[0] for key in bounds)):
                keys = snapshot.key_rows(group)
                within = shown(snapshot.mode, keys, self._within(keys.keys, *bounds), everything=False)
                live = snapshot.live(group, within)
                if len(live):
                    yield from self._batch(snapshot.read(group, live, self._columns), None)

    def of_keys(self, keys: Sequence[Key]) -> Iterator[LakeBatch]:
        """Yield the rows of some keys.

        Args:
            keys: canonical texts of each key.

        Raises:
            ConfigError: the lake table cannot have one of them.
        """
        constants = [pa.repeat(value, len(keys)) for value in self._subject.constants.values()]
        columns = self._snapshot.key.columns
        arrays = [array.cast(to.type) for array, to in zip(constants, columns, strict=False)] + self._own_keys(keys)
        rows = [tuple(array[number] for array in arrays) for number in range(len(keys))]
        asked = [RowKey(tuple(order_value(one.type, one.as_py()) for one in row), row) for row in rows]
        with translate_errors(self._subject.schema.name):
            found, _ = Many(self._snapshot, asked, everything=False).read(self._columns)
            yield from self._batch(found, None)

    def _own_keys(self, keys: Sequence[Key]) -> list[pa.Array]:
        """Return the source's own columns of keys as the lake holds them: the columns that a route adds come before them."""
        columns = self._snapshot.key.columns[len(self._constants) :]
        try:
            own = key_columns(self._subject.keys, keys).columns
            return [array.combine_chunks().cast(to.type) for array, to in zip(own, columns, strict=True)]
        except (pa.ArrowException, ValueError) as error:
            raise ConfigError(
                f"a key has a value that the lake table cannot hold: {error}",
                hint="cdc verify compares the table as a whole.",
                table=self._subject.schema.name,
            ) from error

    def groups(self, least: object = None, greatest: object = None) -> Iterator[RowGroup]:
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
        number = len(self._constants)
        values = [self._order(number, least), self._order(number, greatest)]
        constants = [self._order(n, value) for n, value in enumerate(self._constants.values())]
        for file in snapshot.files:
            if self._may_have(snapshot.file_bounds(file), constants, *values):
                yield from (
                    group for group, bounds in snapshot.row_groups(file) if self._may_have(bounds, constants, *values)
                )

    def _may_have(
        self, bounds: Sequence[Bound], constants: Sequence[OrderValue], least: OrderValue, greatest: OrderValue
    ) -> bool:
        if self._snapshot.mode == "scd2" and self._snapshot.mark is not None and not bounds[-1].may_have(1):
            return False
        if not all(one.may_have(value) for one, value in zip(bounds, constants, strict=False)):
            return False
        first = bounds[len(constants)]
        return first.nulls or not (_less(first.upper, least) or _less(greatest, first.lower))

    def _order(self, number: int, value: object) -> OrderValue:
        """Return a value of a column of the key as bounds have it; None, which bounds nothing, if the column cannot have it."""
        try:
            plain = value.as_py() if isinstance(value, pa.Scalar) else value
            return None if plain is None else order_value(self._snapshot.key.columns[number].type, plain)
        except (NoSuchKey, ValueError, OverflowError):  # a date of the year 0, which Python does not have
            return None

    def _within(
        self, keys: Sequence[pa.Array], after: Sequence[pa.Scalar] | None, end: Sequence[pa.Scalar] | None
    ) -> Rows:
        found = np.ones(len(keys[0]), np.bool_)
        for array, value in zip(keys, self._constants.values(), strict=False):
            found &= _mask(pc.equal(array, value))
        own = keys[len(self._constants) :]
        if after is not None:
            found &= _after(own, after)
        if end is not None:
            found &= ~_after(own, end)
        return np.flatnonzero(found)

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
            yield from self._batch(table, after)

    def _batch(self, table: pa.Table, after: tuple[int, ...] | None) -> Iterator[LakeBatch]:
        """Yield those of some rows that the source must have, if there are any."""
        kept = self._kept(table, after)
        rows = table if kept.all() else table.filter(pa.array(kept))
        if rows.num_rows:
            pairs = zip(self._subject.cells, self._compared, strict=True)
            texts = [text_array(cell, rows.column(name)) for cell, name in pairs]
            yield LakeBatch(self._subject, rows.select(self._beside), texts, self._cuts)

    def _kept(self, table: pa.Table, after: tuple[int, ...] | None) -> Mask:
        """Return which rows the source must have."""
        kept, mark = self._own(table), self._snapshot.mark
        if mark is not None:
            marked = _mask(table.column(mark.name))
            kept &= marked if self._snapshot.mode == "scd2" else ~marked
        if after is not None:
            kept &= _after([table.column(name) for name in ORDER], after)
        before = self._subject.kept_before
        if before is not None:
            # At it or after it: offsets are whole numbers.
            written = [table.column(name) for name in _WRITTEN]
            kept &= _after(written, (before.epoch, before.file, before.offset - 1))
        return kept

    def _own(self, table: pa.Table) -> Mask:
        """Return which rows are of the source table."""
        own = np.ones(table.num_rows, np.bool_)
        for name, value in self._constants.items():
            own &= _mask(pc.equal(table.column(name), value))
        return own


def ranges_of(first: pa.ChunkedArray, cuts: Sequence[int]) -> Numbers:
    """Return the number of each row's range: how many cuts are less than the key's first column, 0 for null."""
    unsigned = pa.types.is_decimal(first.type)
    kind = pa.uint64() if unsigned else pa.int64()
    values = pc.fill_null(first.cast(kind), 0 if unsigned else -(2**63)).to_numpy()
    found: Numbers = np.searchsorted(np.array(cuts, kind.to_pandas_dtype()), values, side="left")
    return found


def _is_whole(of: pa.DataType) -> bool:
    return bool(pa.types.is_integer(of) or pa.types.is_decimal(of))


def _less(value: OrderValue, other: OrderValue) -> bool:
    """Whether a bound is certainly less than another one; None is unknown."""
    return value is not None and other is not None and value < other  # type: ignore[operator]


def _after(columns: Sequence[pa.Array | pa.ChunkedArray], values: Sequence[object]) -> Mask:
    """Return where rows are after others, column by column; null is before every value."""
    found = np.zeros(len(columns[0]), np.bool_)
    for column, value in reversed(list(zip(columns, values, strict=True))):
        found = _mask(pc.greater(column, value)) | (_mask(pc.equal(column, value)) & found)
    return found


def _mask(found: pa.Array | pa.ChunkedArray) -> Mask:
    filled = pc.fill_null(found, False)
    mask: Mask = filled.to_numpy() if isinstance(filled, pa.ChunkedArray) else filled.to_numpy(zero_copy_only=False)
    return mask


def _named(names: Sequence[str], name: str) -> str:
    """Return a column's name as the lake table writes it."""
    return next(known for known in names if known.lower() == name.lower())
