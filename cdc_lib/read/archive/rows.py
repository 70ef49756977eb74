"""Changes of one key in files of batches: their key columns are searched, and the other columns are decoded where the key is.

Files of windows have no statistics and one page for each row group, so the key columns are read completely; they are kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.key_rows import RowKey, Rows
from cdc_lib.apply.rows import is_before, order_of
from cdc_lib.errors import BatchesMissing, CorruptBatch, IncompatibleSchema
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import GTID, OP, TS
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.ports import ObjectStore
from cdc_lib.read.archive.reach import Part
from cdc_lib.read.archive.segments import Hits, Segment, SegmentKeys, segments_of
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import ReadColumn
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import committed, read_columns
from cdc_lib.store.manifests import find_manifest

_THREADS = 8
"""Files that are read at once: object storage takes its time."""


@dataclass(frozen=True, slots=True)
class VersionShape:
    """The columns of versions: of the change first, then those of the source.

    Args:
        table: ``database.table``, for errors.
        change: ``_op``, ``_ts``, ``_gtid`` and the order key.
        source: the lake table's columns of the source.
    """

    table: str
    change: tuple[pa.Field, ...]
    source: tuple[ReadColumn, ...]

    @classmethod
    def of(cls, table: str, columns: Sequence[ReadColumn]) -> VersionShape:
        """Return the shape of a table's versions.

        Args:
            table: its name.
            columns: all columns of the lake table.
        """
        types = {one.name: one.type for one in columns}
        change = [pa.field(OP, pa.string()), pa.field(TS, pa.timestamp("us", tz="UTC")), pa.field(GTID, pa.string())]
        change += [pa.field(name, types[name]) for name in ORDER]
        metadata = {IS_DELETED, *(field.name for field in change)}  # _op says what the mark of soft_delete says
        return cls(table, tuple(change), tuple(one for one in columns if one.name not in metadata))

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema([*self.change, *(one.field for one in self.source)])

    def rows(self, rows: pa.Table) -> pa.Table:
        """Return rows of a file or of the lake in these columns; a column that they lack is null.

        Raises:
            IncompatibleSchema: a column has another type than the lake table's.
        """
        have = {name.lower(): rows.column(name) for name in rows.column_names}
        return pa.Table.from_arrays(
            [self._cast(have, field, rows.num_rows) for field in self.schema], schema=self.schema
        )

    def _cast(self, have: dict[str, pa.ChunkedArray], field: pa.Field, count: int) -> pa.Array | pa.ChunkedArray:
        if field.name.lower() not in have:
            return pa.nulls(count, field.type)
        try:
            return pc.cast(have[field.name.lower()], field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise IncompatibleSchema(
                f"column {field.name} has another type in an archived batch than in the lake table",
                hint="Ask for fewer versions, or from a later time on.",
                table=self.table,
            ) from None


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Changes of one key.

    Args:
        rows: in the shape of versions.
        columns: for each row, the names of the columns that its file has.
    """

    rows: pa.Table
    columns: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class ArchivedRows:
    """Searches files of batches.

    Args:
        store: holds the batches.
        cache: keeps key columns.
        shape: of the result.
        key: the lake table's key.
    """

    store: ObjectStore
    cache: Cache
    shape: VersionShape
    key: tuple[ReadColumn, ...]

    def segments(self, parts: Sequence[Part]) -> tuple[Segment, ...]:
        """Return files, newest first, as they are searched."""
        return segments_of(parts, [path_of(part) for part in parts])

    def of_key(self, segments: Sequence[Segment], key: RowKey, enough: Callable[[KeyChanges], bool]) -> KeyChanges:
        """Return changes of a key; older ones are not looked for once there are enough.

        Args:
            segments: files, newest first.
            key: a whole key.
            enough: whether no older changes are needed.

        Raises:
            BatchesMissing: a batch was removed while it was read.
            CorruptBatch: a file is missing or damaged.
            IncompatibleSchema: a row does not fit into the lake table.
        """
        changes = KeyChanges(self.shape.schema.empty_table(), ())
        with ThreadPoolExecutor(_THREADS) as threads:
            for segment in segments:
                if not (hits := self._keys_of(segment, threads).hits(key)):
                    continue
                changes = self._with(changes, segment, hits, threads)
                if enough(changes):
                    break
        return changes

    def _with(self, changes: KeyChanges, segment: Segment, hits: Hits, threads: ThreadPoolExecutor) -> KeyChanges:
        """Return changes with the rows of a segment that count."""
        parts = [segment.parts[number] for number in hits]
        found = _at_once(threads, lambda part, groups: list(self.decoded(part, groups)), parts, list(hits.values()))
        columns = list(changes.columns)
        for part, tables in zip(parts, found, strict=True):
            columns += [names_of(part)] * sum(one.num_rows for one in tables)
        return KeyChanges(pa.concat_tables([changes.rows, *chain.from_iterable(found)]), tuple(columns))

    def decoded(self, part: Part, hits: dict[int, Rows]) -> Iterator[pa.Table]:
        """Yield the rows of row groups that count, in the shape of versions."""
        for number, whole in self._read(part, None, hits).items():
            rows = whole.take(pa.array(hits[number]))
            shaped = self.shape.rows(committed(rows, part.commits) if part.commits else rows)
            order = order_of(shaped)
            yield shaped.filter(pa.array(~is_before(order, part.low) & is_before(order, part.high)))

    def _keys_of(self, segment: Segment, threads: ThreadPoolExecutor) -> SegmentKeys:
        """Return the keys of a segment; a new one of which some files were read before reads the others only."""

        def load() -> tuple[SegmentKeys, int]:
            types = [column.type for column in self.key]
            keys = SegmentKeys.of(_at_once(threads, self._keys_in, segment.parts, segment.paths), types)
            return keys, keys.bytes

        found: SegmentKeys = self.cache.get(("archived segment", segment.paths, self.key), load)
        return found

    def _keys_in(self, part: Part, path: str) -> list[list[pa.ChunkedArray]]:
        """Return the key columns of each row group of a file."""

        def load() -> tuple[list[list[pa.ChunkedArray]], int]:
            groups = self.keys_of(part, None)
            kept = [groups[number] for number in sorted(groups)]
            return kept, 500 + sum(array.nbytes for group in kept for array in group)

        found: list[list[pa.ChunkedArray]] = self.cache.get(("archived keys", path, self.key), load)
        return found

    def keys_of(self, part: Part, groups: Collection[int] | None) -> dict[int, list[pa.ChunkedArray]]:
        """Return the key columns of row groups of a file, in the lake table's types; None reads all groups."""
        found = self._read(part, names_in(part.schema, self.key), groups)
        return {number: self._cast(keys) for number, keys in found.items()}

    def _cast(self, keys: pa.Table) -> list[pa.ChunkedArray]:
        return [pc.cast(keys.column(number), column.type) for number, column in enumerate(self.key)]

    def _read(self, part: Part, names: Sequence[str] | None, groups: Any) -> dict[int, pa.Table]:
        with self.removed(part):
            return read_columns(self.store, path_of(part), part.file, names, groups)

    @contextmanager
    def removed(self, part: Part) -> Iterator[None]:
        """Tell a file that retention removed from a damaged one.

        Raises:
            BatchesMissing: its batch was removed.
        """
        try:
            yield
        except CorruptBatch:
            if find_manifest(self.store, part.manifest) is not None:
                raise
            raise BatchesMissing(
                "a batch was removed while it was read", hint="Call refresh(), and read again.", key=part.manifest
            ) from None


def path_of(part: Part) -> str:
    """Return the key of a file in the store."""
    return layout.beside(part.manifest, part.file.path)


def names_of(part: Part) -> frozenset[str]:
    """Return the names of a file's columns in lower case."""
    return frozenset(column.name.lower() for column in part.schema.columns)


def _at_once(threads: ThreadPoolExecutor, do: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
    """Call a function with the values of lists, several at once; for single values no thread is started."""
    return list(threads.map(do, *lists)) if len(lists[0]) > 1 else list(map(do, *lists))


def names_in(schema: TableSchema, key: Sequence[ReadColumn]) -> list[str]:
    """Return the names of the lake table's key columns in a file."""
    names = {column.name.lower(): column.name for column in schema.columns}
    return [names[column.name.lower()] for column in key]
