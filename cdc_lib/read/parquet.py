"""Parquet files of a lake table, read by row groups; columns are found by Iceberg's field ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from cdc_lib.apply.key_rows import OrderValue
from cdc_lib.errors import StoreError, StoreUnavailable
from cdc_lib.read.bounds import Bound
from cdc_lib.read.cache import Cache, RecentlyUsed
from cdc_lib.read.columns import ReadColumn, default_array
from cdc_lib.read.pages.few import FewRows, FewRowsReader
from cdc_lib.read.pages.index import PageIndex, read_index
from cdc_lib.read.pages.page import Kind, Value
from cdc_lib.read.pages.selected import Wanted, read_pages

_FIELD_ID = b"PARQUET:field_id"
_HANDLE_BYTES = 10_000
"""About what an open file takes, besides its footer."""
_LOCAL_GAP, _REMOTE_GAP = 4 * 1024, 1024**2
"""Most bytes between two pages that are read with them: less time than another request takes."""

BATCH_ROWS = 65_536
"""Most rows that :meth:`ParquetFile.batches` decodes at once."""

BATCH_BYTES = 32 << 20
"""About how much of a row group it decodes at once."""


@contextmanager
def translate_file_errors(path: str) -> Iterator[None]:
    """Translate the errors of reading a file.

    Raises:
        StoreUnavailable: its storage does not answer.
        StoreError: it does not exist, or is damaged.
    """
    try:
        yield
    except FileNotFoundError:
        raise StoreError(
            "a file of the pinned snapshot does not exist any more",
            hint="Maintenance removes the files of expired snapshots: call refresh(), and read again.",
            file=path,
        ) from None
    except (pa.ArrowInvalid, ValueError) as error:
        raise StoreError(
            f"a file of the lake table is damaged: {error}", hint="Restore it, or take a new snapshot.", file=path
        ) from None
    except OSError as error:
        raise StoreUnavailable(
            f"a file of the lake table cannot be read: {type(error).__name__}",
            hint="Check the lake's storage and its credentials: cdc doctor.",
            file=path,
        ) from None


@dataclass(frozen=True)
class ParquetFile:
    """An open Parquet file; threads may read it at once.

    Args:
        path: its location.
        handle: reads its bytes.
        metadata: its footer.
        leaves: number and Arrow type of each column, by field id.
        is_remote: whether it is better to read adjacent columns in one request.
    """

    path: str
    handle: pa.NativeFile
    metadata: pq.FileMetaData
    leaves: dict[int, tuple[int, pa.DataType]]
    is_remote: bool

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Position of the first row of each row group, and the number of all rows."""
        counts = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        return tuple(np.cumsum([0, *counts]).tolist())

    @property
    def row_groups(self) -> range:
        """Numbers of the row groups."""
        return range(self.metadata.num_row_groups)

    def count(self, row_group: int) -> int:
        """Return the number of rows of a row group."""
        return self.starts[row_group + 1] - self.starts[row_group]

    def bounds(self, row_group: int, columns: Sequence[ReadColumn]) -> tuple[Bound, ...]:
        """Return the bounds of columns in a row group, from the footer."""
        return tuple(self._bound(row_group, column) for column in columns)

    def _bound(self, row_group: int, column: ReadColumn) -> Bound:
        if column.field_id not in self.leaves:
            return Bound()
        number, of = self.leaves[column.field_id]
        return bound_of(self.metadata, row_group, number, of)

    def read(self, row_group: int, columns: Sequence[ReadColumn], *, threads: bool = False) -> pa.Table:
        """Return columns of a row group, in the types of the table's schema.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        stored = [column for column in columns if column.field_id in self.leaves]
        numbers = [self.leaves[column.field_id][0] for column in stored]
        with translate_file_errors(self.path):
            opened = pq.ParquetFile(self.handle, metadata=self.metadata, pre_buffer=self.is_remote)
            # Arrow returns the columns in the order of the file.
            read = opened.reader.read_row_group(row_group, column_indices=sorted(numbers), use_threads=threads)
        by_number = dict(zip(sorted(numbers), read.columns, strict=True))
        return self._as_columns(by_number, columns, self.count(row_group))

    def batches(self, row_group: int, columns: Sequence[ReadColumn]) -> Iterator[pa.Table]:
        """Yield columns of a row group, some rows at a time, in the types of the table's schema.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        stored = sorted(self.leaves[column.field_id][0] for column in columns if column.field_id in self.leaves)
        count = self.count(row_group)
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * count // max(1, self._size(row_group, stored))))
        with translate_file_errors(self.path):
            opened = pq.ParquetFile(self.handle, metadata=self.metadata, pre_buffer=self.is_remote)
            parts = opened.reader.iter_batches(rows, [row_group], stored, False)
            for part in parts if stored else ():
                yield self._as_columns(dict(zip(stored, part.columns, strict=True)), columns, part.num_rows)
        if not stored:
            yield self._as_columns({}, columns, count)

    def _size(self, row_group: int, numbers: Sequence[int]) -> int:
        """Return the bytes of columns of a row group, before compression."""
        described = self.metadata.row_group(row_group)
        return sum(described.column(number).total_uncompressed_size for number in numbers)

    def read_rows(self, index: PageIndex, wanted: Sequence[Wanted], columns: Sequence[ReadColumn]) -> pa.Table | None:
        """Return columns of rows in their order, from the pages that have them; None if the row groups have to be read.

        Args:
            index: of the file's pages.
            wanted: the rows.
            columns: with the types of the table's schema.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        numbers = [self.leaves[column.field_id][0] for column in columns if column.field_id in self.leaves]
        gap = _REMOTE_GAP if self.is_remote else _LOCAL_GAP
        with translate_file_errors(self.path):
            found = read_pages(index, numbers, wanted, self.handle.read_at, gap) if numbers else {}
        return None if found is None else self._as_columns(found, columns, sum(len(one.rows) for one in wanted))

    def read_few(
        self, index: PageIndex, kept: RecentlyUsed, wanted: Sequence[FewRows], columns: Sequence[tuple[int, Kind]]
    ) -> list[list[Value]] | None:
        """Return values of columns as they are stored, in the order of the rows; None if Arrow has to read them.

        Args:
            index: of the file's pages.
            kept: keeps pages.
            wanted: the rows.
            columns: number and kind of each.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        gap = _REMOTE_GAP if self.is_remote else _LOCAL_GAP
        with translate_file_errors(self.path):
            return FewRowsReader(self.path, index, self.handle.read_at, gap, kept).read(columns, wanted)

    def _as_columns(
        self, by_number: Mapping[int, pa.Array | pa.ChunkedArray], columns: Sequence[ReadColumn], count: int
    ) -> pa.Table:
        """Return columns of the file in the types of the table's schema; a column that it lacks has its default."""
        arrays = [
            pc.cast(by_number[self.leaves[one.field_id][0]], one.type)
            if one.field_id in self.leaves
            else default_array(one, count)
            for one in columns
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema([column.field for column in columns]))


class ParquetFiles:
    """Opens Parquet files, and keeps them open while they are used.

    Args:
        io: of the table.
        cache: keeps footers.
    """

    def __init__(self, io: FileIO, cache: Cache) -> None:
        self._io = io
        self._cache = cache

    def open(self, path: str) -> ParquetFile:
        """Open a file.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        opened: ParquetFile = self._cache.get(("parquet", path), lambda: self._open(path))
        return opened

    def pages(self, file: ParquetFile) -> PageIndex | None:
        """Return where the pages of a file are; None if it does not say it.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist, or is damaged.
        """
        index: PageIndex | None = self._cache.get(("pages", file.path), lambda: _pages(file))
        return index

    def read_bytes(self, path: str, offset: int, size: int) -> bytes:
        """Return a part of a file.

        Raises:
            StoreUnavailable: its storage does not answer.
            StoreError: the file does not exist.
        """
        with translate_file_errors(path), self._io.new_input(path).open() as stream:
            stream.seek(offset)
            return bytes(stream.read(size))

    def _open(self, path: str) -> tuple[ParquetFile, int]:
        with translate_file_errors(path):
            file = opened_file(path, self._io.new_input(path).open())
        return file, file.metadata.serialized_size + _HANDLE_BYTES


def opened_file(path: str, handle: Any) -> ParquetFile:
    """Read the footer of a file.

    Args:
        path: its location.
        handle: reads its bytes.

    Raises:
        StoreError: it has no field ids.
    """
    opened = pq.ParquetFile(handle)
    leaves = dict(_leaves(opened, path))
    is_remote = not isinstance(handle, pa.OSFile | pa.MemoryMappedFile) and "://" in path
    return ParquetFile(path, handle, opened.metadata, leaves, is_remote and not path.startswith("file:"))


def _pages(file: ParquetFile) -> tuple[PageIndex | None, int]:
    if not isinstance(file.handle, pa.NativeFile):
        return None, _HANDLE_BYTES
    with translate_file_errors(file.path):
        index = read_index(file.metadata, file.handle.read_at)
    return index, index.bytes


def _leaves(opened: pq.ParquetFile, path: str) -> Iterator[tuple[int, tuple[int, pa.DataType]]]:
    """Yield the field id of each plain column, with its number and type; nested columns are not read."""
    metadata = opened.metadata
    numbers = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for field in opened.schema_arrow:
        if field.name in numbers:
            if _FIELD_ID not in (field.metadata or {}):
                raise StoreError(
                    "a data file has no field ids, so that its columns cannot be known after a rename",
                    hint="Another writer added it. Rewrite the data files in Spark.",
                    file=path,
                )
            yield int(field.metadata[_FIELD_ID]), (numbers[field.name], field.type)


def bound_of(metadata: pq.FileMetaData, row_group: int, number: int, of: pa.DataType) -> Bound:
    """Return the bound of a column in a row group, from the footer of a Parquet file.

    Args:
        metadata: the footer.
        row_group: number of the row group.
        number: of the column.
        of: its type in the file.
    """
    statistics = metadata.row_group(row_group).column(number).statistics
    if statistics is None:
        return Bound()
    nulls = not statistics.has_null_count or statistics.null_count > 0
    if not statistics.has_min_max:
        return Bound(nulls=nulls)
    return Bound(_order_value(of, statistics.min_raw), _order_value(of, statistics.max_raw), nulls)


def _order_value(of: pa.DataType, raw: Any) -> OrderValue:
    """Return a raw statistic of Parquet as an order value."""
    if pa.types.is_decimal(of) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    if isinstance(raw, str):
        return raw.encode()
    return int(raw) if isinstance(raw, bool) else raw
