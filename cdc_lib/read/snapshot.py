"""One snapshot of a lake table: its columns, its key, its files, and the row groups that may have a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.io import FileIO

from cdc_lib.apply.key_rows import KeyRows, OrderValue, Rows
from cdc_lib.errors import ConfigError
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED
from cdc_lib.read.bounds import Bound, Bounds, decode_bound
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import Columns, ReadColumn
from cdc_lib.read.deletes import Deletes
from cdc_lib.read.few_rows import FewRowsOfSnapshot, GroupRows
from cdc_lib.read.keys import KeyColumns
from cdc_lib.read.manifests import Files, LiveFile
from cdc_lib.read.pages.selected import MOST, Wanted
from cdc_lib.read.parquet import ParquetFile, ParquetFiles
from cdc_lib.read.values import row_values

_FEW = 20
"""Of so many rows of a row group one is read: then its key columns are taken from memory."""
_VERY_FEW = 200
"""Of so many rows of a row group one is read: then single values are read from its pages."""

_MARKS = {"soft_delete": IS_DELETED, "scd2": IS_CURRENT}
"""The column by which a mode hides rows."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a data file."""

    file: LiveFile
    opened: ParquetFile
    number: int


Hit = tuple[RowGroup, Rows]
"""A row group, and rows in it."""


@dataclass(frozen=True, slots=True)
class SnapshotParts:
    """What a snapshot consists of.

    Args:
        name: of the table, for errors.
        snapshot_id: Iceberg's id; None if the table has no snapshot yet.
        mode: how the table keeps rows.
        columns: of the snapshot.
        key: names of the key's columns; empty without a key.
        files: of the snapshot.
        io: opens files.
        cache: keeps what is read of files.
    """

    name: str
    snapshot_id: int | None
    mode: str
    columns: Columns
    key: Sequence[str]
    files: Files
    io: FileIO
    cache: Cache


class PinnedSnapshot:
    """A snapshot; it never changes.

    Args:
        parts: what it consists of.
    """

    def __init__(self, parts: SnapshotParts) -> None:
        self.parts = parts
        self.name = parts.name
        self.id = parts.snapshot_id
        self.mode = parts.mode
        self.columns = parts.columns
        self._key = tuple(map(parts.columns.named, parts.key))
        mark = _MARKS.get(parts.mode)
        # A snapshot from before the table became soft_delete has no such column.
        self.mark = parts.columns.named(mark) if mark in parts.columns.names else None
        self._files = parts.files
        self._cache = parts.cache
        self._parquet = ParquetFiles(parts.io, parts.cache)
        self._deletes = Deletes(parts.files, self._parquet, parts.cache)
        bounds = [self.file_bounds(one) for one in parts.files.data]
        self._bounds = Bounds(bounds, [one.type for one in self._compared])
        self._few = FewRowsOfSnapshot(self._parquet, parts.cache.pages, self._key)

    @property
    def until(self) -> Point | None:
        """The position after the waiting changes that it has too; None for the lake alone."""
        return None

    @property
    def has_key(self) -> bool:
        """Whether rows can be read by key."""
        return bool(self._key)

    @property
    def key(self) -> KeyColumns:
        """The key.

        Raises:
            ConfigError: the table has none.
        """
        if not self._key:
            raise ConfigError(
                "the lake table has no key, so its rows cannot be read by key",
                hint="Its source table has no primary key. Read it with Spark or with cdc lake preview.",
                table=self.name,
            )
        return KeyColumns(self._key, self.name)

    @property
    def files(self) -> tuple[LiveFile, ...]:
        """All data files."""
        return self._files.data

    @property
    def _compared(self) -> tuple[ReadColumn, ...]:
        """The columns whose bounds exclude files: the key, and the mode's mark."""
        return (*self._key, self.mark) if self.mark is not None else self._key

    def file_bounds(self, file: LiveFile) -> tuple[Bound, ...]:
        """Return the bounds of the key columns in a file, from its manifest, then that of the mark."""
        return tuple(
            Bound(
                decode_bound(one.type, file.lower.get(one.field_id)),
                decode_bound(one.type, file.upper.get(one.field_id)),
                file.nulls.get(one.field_id) != 0,
            )
            for one in self._compared
        )

    def files_with(self, order: Sequence[OrderValue]) -> list[LiveFile]:
        """Return the files that may have rows of a key; a value after the key is the mark's."""
        return [self._files.data[number] for number in self._bounds.with_key(order)]

    def row_groups(self, file: LiveFile) -> Iterator[tuple[RowGroup, tuple[Bound, ...]]]:
        """Yield the row groups of a file, with the bounds of the key columns and of the mark."""
        opened = self._parquet.open(file.path)
        for number in opened.row_groups:
            group = RowGroup(file, opened, number)
            yield group, self._cache.get(("bounds", file.path, number, self._compared), partial(self._bounds_of, group))

    def row_groups_with(self, file: LiveFile, order: Sequence[OrderValue]) -> list[RowGroup]:
        """Return the row groups of a file that may have rows of a key; a value after the key is the mark's."""
        opened = self._parquet.open(file.path)
        bounds: Bounds = self._cache.get(
            ("bounds of all", file.path, self._compared), partial(self._bounds_of_all, opened)
        )
        return [RowGroup(file, opened, number) for number in bounds.with_key(order)]

    def _bounds_of_all(self, opened: ParquetFile) -> tuple[Bounds, int]:
        bounds = [opened.bounds(number, self._compared) for number in opened.row_groups]
        return Bounds(bounds, [one.type for one in self._compared]), 500 + 100 * len(bounds) * len(self._compared)

    def _bounds_of(self, group: RowGroup) -> tuple[tuple[Bound, ...], int]:
        return group.opened.bounds(group.number, self._compared), 500

    def key_rows(self, group: RowGroup) -> KeyRows:
        """Return the keys of a row group."""
        kept: KeyRows = self._cache.get(
            ("keys", group.file.path, group.number, self._compared), lambda: self._read_key_rows(group)
        )
        return kept

    def _read_key_rows(self, group: RowGroup) -> tuple[KeyRows, int]:
        columns = group.opened.read(group.number, self._compared).columns
        rows = KeyRows.of(columns[: len(self._key)], columns[len(self._key)] if self.mark is not None else None)
        return rows, rows.bytes

    def live(self, group: RowGroup, rows: Rows) -> Rows:
        """Return those of the rows that are not deleted in the lake table."""
        deleted = self._deletes.of(group.file) if len(rows) else None
        if deleted is None:
            return rows
        start = group.opened.starts[group.number]
        if len(rows) < 100:
            return np.array([row for row in rows.tolist() if start + row not in deleted], np.int64)
        return rows[~deleted.mask(start, group.opened.count(group.number))[rows]]

    def groups(self, file: LiveFile) -> Iterator[RowGroup]:
        """Yield the row groups of a file."""
        opened = self._parquet.open(file.path)
        for number in opened.row_groups:
            yield RowGroup(file, opened, number)

    def deletes_of(self, file: LiveFile) -> frozenset[object]:
        """Return what deletes rows of a file; equal for two snapshots that have the same deletes."""
        return self._deletes.named(file)

    def all_rows(self, columns: Sequence[ReadColumn]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in no order; also those that the mode hides."""
        for file in self.files:
            for group in self.groups(file):
                count = group.opened.count(group.number)
                rows = self.live(group, np.arange(count))
                yield from self.read(group, rows, columns, threads=True).to_batches()

    def batches(self, group: RowGroup, columns: Sequence[ReadColumn]) -> Iterator[pa.Table]:
        """Yield columns of the rows of a row group that are not deleted, some rows at a time; also rows that the mode hides."""
        deleted = self._deletes.of(group.file)
        start = group.opened.starts[group.number]
        for table in group.opened.batches(group.number, columns):
            kept = table if deleted is None else table.filter(pa.array(~deleted.mask(start, table.num_rows)))
            start += table.num_rows
            yield kept

    def read(self, group: RowGroup, rows: Rows, columns: Sequence[ReadColumn], *, threads: bool = False) -> pa.Table:
        """Return columns of rows of a row group."""
        return self.read_hits([(group, rows)], columns, threads=threads)

    def read_hits(self, hits: Sequence[Hit], columns: Sequence[ReadColumn], *, threads: bool = False) -> pa.Table:
        """Return columns of rows of row groups of one file, in this order."""
        if all(0 < len(rows) * _VERY_FEW <= group.opened.count(group.number) for group, rows in hits):
            found = self._read_few(hits, columns)
            if found is not None:
                return found
        are_some = all(0 < len(rows) <= MOST * group.opened.count(group.number) for group, rows in hits)
        found = self._read_pages(hits, columns) if are_some else None
        if found is not None:
            return found
        return pa.concat_tables([self._read_group(group, rows, columns, threads) for group, rows in hits])

    def _read_few(self, hits: Sequence[Hit], columns: Sequence[ReadColumn]) -> pa.Table | None:
        """Return columns of few rows; None if they have to be read in another way."""
        groups = [self._group_rows(hit) for hit in hits]
        single, of_pages = self._few.split(groups, columns)
        found = self._few.table(groups, single) if single else None
        if found is None or not of_pages:
            return found
        if (texts := self._read_pages(hits, of_pages)) is None:
            return None
        arrays = {
            name: column for one in (found, texts) for name, column in zip(one.column_names, one.columns, strict=True)
        }
        return pa.Table.from_arrays(
            [arrays[one.name] for one in columns], schema=pa.schema([one.field for one in columns])
        )

    def row(self, group: RowGroup, number: int, columns: tuple[ReadColumn, ...]) -> dict[str, Any]:
        """Return columns of one row of a row group as Python values."""
        hit = (group, np.array([number]))
        found = self._few.row(self._group_rows(hit), columns)
        return row_values(self.read(*hit, columns))[0] if found is None else found

    def _group_rows(self, hit: Hit) -> GroupRows:
        group, rows = hit
        keys = partial(PinnedSnapshot.key_rows, self, group)
        return GroupRows(group.opened, group.number, rows.tolist(), lambda: keys().keys)

    def _read_pages(self, hits: Sequence[Hit], columns: Sequence[ReadColumn]) -> pa.Table | None:
        """Return columns of rows from the pages that have them; None if the row groups have to be read."""
        opened = hits[0][0].opened
        if (index := self._parquet.pages(opened)) is None:
            return None
        are_few = all(len(rows) * _FEW < group.opened.count(group.number) for group, rows in hits)
        known = [self._known(group, columns) if are_few else {} for group, _ in hits]
        wanted = [Wanted(group.number, rows, group.opened.count(group.number)) for group, rows in hits]
        read = opened.read_rows(index, wanted, [one for one in columns if one not in known[0]])
        if read is None:
            return None
        found = dict(zip(read.schema.names, read.columns, strict=True))
        for one in known[0]:
            taken = [arrays[one].take(pa.array(rows)) for arrays, (_, rows) in zip(known, hits, strict=True)]
            found[one.name] = pa.chunked_array(taken, one.type)
        schema = pa.schema([one.field for one in columns])
        return pa.Table.from_arrays([found[name] for name in schema.names], schema=schema)

    def _read_group(self, group: RowGroup, rows: Rows, columns: Sequence[ReadColumn], threads: bool) -> pa.Table:
        count = group.opened.count(group.number)
        known = self._known(group, columns) if len(rows) * _FEW < count else {}
        whole = group.opened.read(group.number, [one for one in columns if one not in known], threads=threads)
        if len(rows) == count:
            return whole
        taken = pa.array(rows)
        found = {one.name: array.take(taken) for one, array in known.items()}
        found |= zip(whole.schema.names, whole.take(taken).columns, strict=True)
        schema = pa.schema([one.field for one in columns])
        return pa.Table.from_arrays([found[name] for name in schema.names], schema=schema)

    def _known(self, group: RowGroup, columns: Sequence[ReadColumn]) -> dict[ReadColumn, pa.Array]:
        """Return those of the columns that are in memory, because the key was looked up in them."""
        keys = dict(zip(self._key, PinnedSnapshot.key_rows(self, group).keys, strict=True)) if self._key else {}
        # A minus zero of the file is a zero in the keys.
        return {one: keys[one] for one in columns if one in keys and not pa.types.is_floating(one.type)}


def shown(mode: str, rows: KeyRows, found: Rows, *, everything: bool) -> Rows:
    """Return those of the rows that a mode shows: in soft_delete not the deleted ones, in scd2 the current versions."""
    if rows.marked is None or everything:
        return found
    marked: NDArray[np.bool_] = rows.marked[found]
    return found[~marked] if mode == "soft_delete" else found[marked]
