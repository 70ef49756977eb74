"""The lake's side of a range of keys: its rows with their hashes, as of the snapshot of a cut, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.key_rows import OrderValue, Rows
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.model.coverage import Key
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET
from cdc_lib.model.position import Point
from cdc_lib.read.bounds import Bound
from cdc_lib.read.keys import NoSuchKey, order_value
from cdc_lib.read.snapshot import Hit, PinnedSnapshot, shown
from cdc_lib.verify.changed.cell_arrays import row_hashes, text_array
from cdc_lib.verify.changed.cell_text import row_text
from cdc_lib.verify.changed.hash_kernel import Hashes
from cdc_lib.verify.changed.lake_rows import OpenedTable
from cdc_lib.verify.checksums import ListedRow, Sum
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.key_values import key_columns

_WRITTEN = (EPOCH, BINLOG, OFFSET)


@dataclass(frozen=True)
class RangeRows:
    """Rows of some row groups, by their texts: those of a group are of one length.

    Args:
        subject: what is compared.
        groups: of each row group, the texts of each compared column.
    """

    subject: Subject
    groups: Sequence[Sequence[pa.Array]]

    @cached_property
    def hashes(self) -> list[Hashes]:
        """The hash of each row of each group."""
        return [row_hashes(self.subject.cells, texts) for texts in self.groups]

    @property
    def sum(self) -> Sum:
        """The checksum of all rows."""
        return Sum(sum(map(len, self.hashes)), sum(int(one.sum()) for one in self.hashes))

    def listed(self) -> Iterator[ListedRow]:
        """Yield each row."""
        keys = self.subject.keys
        own = [next(i for i, cell in enumerate(self.subject.cells) if cell is key) for key in keys]
        for texts, hashes in zip(self.groups, self.hashes, strict=True):
            for hashed, *parts in zip(hashes.tolist(), *(texts[i].to_pylist() for i in own), strict=True):
                key = tuple(part or "" for part in parts)
                yield ListedRow(row_text(keys, key), hashed, 1, key)


def rows_between(opened: OpenedTable, subject: Subject, after: Key | None, end: Key | None) -> RangeRows:
    """Return the lake's rows whose keys are after a key, up to another one, in the lake's order of keys.

    Texts are in the order of their UTF-8 bytes there, which is not that of every collation: rows may then be in another range than
    at the source. They are looked up by key before anything is said of them, and the ranges of both sides tile all keys.

    Args:
        opened: the lake table.
        subject: what is compared.
        after: canonical texts of the key before the rows; None is no bound.
        end: canonical texts of the last key; None is no bound.

    Raises:
        StoreError: a file cannot be read.
        ConfigError: the lake table cannot have one of the bounds as a key.
    """
    snapshot = opened.snapshot
    names = {name.lower(): name for name in snapshot.columns.names}
    wanted = [names[cell.column.name.lower()] for cell in subject.cells]
    written = () if subject.kept_before is None else _WRITTEN
    columns = snapshot.columns.choose([*wanted, *written])
    bounds = _KeyBounds(snapshot, subject, after, end)
    groups = []
    with translate_errors(subject.schema.name):
        for group, rows in bounds.hits():
            table = _compared(subject, snapshot.read(group, rows, columns))
            groups.append([text_array(cell, table.column(n)) for cell, n in zip(subject.cells, wanted, strict=True)])
    return RangeRows(subject, groups)


def _compared(subject: Subject, table: pa.Table) -> pa.Table:
    """Return the rows that the source must have."""
    before = subject.kept_before
    if before is None:
        return table
    written = zip(*(table.column(name).to_pylist() for name in _WRITTEN), strict=True)
    return table.filter(pa.array([Point(*place) >= before for place in written], pa.bool_()))


class _KeyBounds:
    """Finds the rows of a range of keys.

    Args:
        snapshot: of the lake table.
        subject: what is compared.
        after: canonical texts of the key before the rows; None is no bound.
        end: canonical texts of the last key; None is no bound.
    """

    def __init__(self, snapshot: PinnedSnapshot, subject: Subject, after: Key | None, end: Key | None) -> None:
        self._snapshot = snapshot
        self._columns = snapshot.key.columns
        added = len(subject.constants)
        values = [
            pa.scalar(value).cast(of.type) for value, of in zip(subject.constants.values(), self._columns, strict=False)
        ]
        self._constants = values
        self._after = None if after is None else self._values(subject, after, added)
        self._end = None if end is None else self._values(subject, end, added)

    def hits(self) -> Iterator[Hit]:
        """Yield the row groups that have rows of the range, and the rows that the table's mode shows."""
        snapshot = self._snapshot
        for file in snapshot.files:
            if not self._may_have(snapshot.file_bounds(file)):
                continue
            for group, bounds in snapshot.row_groups(file):
                if not self._may_have(bounds):
                    continue
                keys = snapshot.key_rows(group)
                live = snapshot.live(group, shown(snapshot.mode, keys, self._within(keys.keys), everything=False))
                if len(live):
                    yield group, live

    def _values(self, subject: Subject, key: Key, added: int) -> list[pa.Scalar]:
        try:
            own = key_columns(subject.keys, [key])
            return [column[0].cast(of.type) for column, of in zip(own.columns, self._columns[added:], strict=True)]
        except (pa.ArrowException, ValueError) as error:
            raise ConfigError(
                f"the lake table cannot have the key {', '.join(key)}, with which a range ends: {error}",
                hint="cdc verify compares the table as a whole.",
                table=subject.schema.name,
            ) from error

    def _may_have(self, bounds: Sequence[Bound]) -> bool:
        """Whether the first of the source's own key columns may be within the range, and the constants are there."""
        constants = len(self._constants)
        if not all(
            one.may_have(self._order(n, value))
            for n, (one, value) in enumerate(zip(bounds, self._constants, strict=False))
        ):
            return False
        first = bounds[constants]
        if first.nulls:
            return True
        if self._after is not None and _less(first.upper, self._order(constants, self._after[0])):
            return False
        return self._end is None or not _less(self._order(constants, self._end[0]), first.lower)

    def _order(self, number: int, value: pa.Scalar) -> OrderValue:
        try:
            return order_value(self._columns[number].type, value.as_py())
        except NoSuchKey as error:
            raise AssertionError(value) from error

    def _within(self, keys: Sequence[pa.Array]) -> Rows:
        found = np.ones(len(keys[0]), np.bool_)
        for array, value in zip(keys, self._constants, strict=False):
            found &= _plain(pc.equal(array, value))
        own = keys[len(self._constants) :]
        if self._after is not None:
            found &= _greater(own, self._after)
        if self._end is not None:
            found &= ~_greater(own, self._end)
        return np.flatnonzero(found)


def _less(one: OrderValue, other: OrderValue) -> bool:
    """Whether a bound is certainly less than another one; None is unknown."""
    return one is not None and other is not None and one < other  # type: ignore[operator]


def _greater(arrays: Sequence[pa.Array], values: Sequence[pa.Scalar]) -> np.ndarray:
    """Return where a key is after another one, column by column; null is before every value."""
    found = np.zeros(len(arrays[0]), np.bool_)
    for array, value in zip(reversed(arrays), reversed(values), strict=True):
        found = _plain(pc.greater(array, value)) | (_plain(pc.equal(array, value)) & found)
    return found


def _plain(mask: pa.Array) -> np.ndarray:
    plain: np.ndarray = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return plain
