"""Rows of one key in the chunks of merged snapshots; of most chunks neither the manifest nor the file is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from cdc_lib.apply.key_rows import KeyRows, RowKey
from cdc_lib.merge.chunks import low_of, read_to_of
from cdc_lib.model.lake_table import SnapshotMark
from cdc_lib.model.manifest import Manifest, chunk_of
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.read.archive.chunk_keys import KeyNotOrdered, LastKey, chunks_with_key, last_key_of, may_be_in
from cdc_lib.read.archive.reach import Part
from cdc_lib.read.archive.reads import ChunkRow
from cdc_lib.read.archive.rows import ArchivedRows, KeyChanges, names_in, names_of, path_of
from cdc_lib.read.bounds import Bound
from cdc_lib.read.parquet import bound_of
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import parquet_file
from cdc_lib.store.manifests import find_manifest

_THREADS = 8
"""Manifests or files that are read at once: object storage takes its time."""


class SnapshotChunks:
    """The stored chunks of one snapshot of a table.

    Args:
        archived: reads files of batches.
        source: name of the source.
        table: ``database.table`` at the source.
        mark: of the snapshot, which the lake table has completely.
    """

    def __init__(self, archived: ArchivedRows, source: str, table: TableName, mark: SnapshotMark) -> None:
        self.mark = mark
        self._archived, self._table = archived, table
        self._task = SnapshotTask(source, mark.low.epoch, mark.snapshot_id, *table.pair)

    def read_at(self) -> datetime | None:
        """Return when the first of its stored chunks was read; None if it has none."""
        first = self._manifest(0) if self._keys else None
        return first.first_time if first is not None else None

    def of_key(self, key: RowKey) -> list[ChunkRow]:
        """Return the rows of a key: one at most, unless the source tells keys apart that the lake does not.

        Raises:
            BatchesMissing: a chunk was removed while it was read.
            CorruptBatch: a file is missing or damaged.
            IncompatibleSchema: a row does not fit into the lake table.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                numbers = chunks_with_key(len(self._keys), self._last_key, key.order, len(self._archived.key))
            except KeyNotOrdered:
                numbers = range(len(self._keys))
            if len(numbers) == 1:
                return self._reads(numbers[0], key)
            return [one for found in threads.map(lambda number: self._reads(number, key), numbers) for one in found]

    def deletes(self, key: RowKey) -> bool:
        """Whether a row of the key that the snapshot lacked was deleted with it: it read a range of keys again."""
        first = self._manifest(0) if self.mark.partial and self._keys else None
        selection = chunk_of(first).selection if first is not None else None
        if first is None or selection is None or not selection.is_range:
            return False
        schemas = first.schemas.values()
        return all(may_be_in(selection, schema, self._archived.key, key.order) for schema in schemas)

    @cached_property
    def _keys(self) -> Sequence[str]:
        """Keys of the manifests in the order of the table's key: range after range, chunk after chunk."""
        prefix = layout.chunks_prefix(self._task)
        keys = [info.key for info in self._archived.store.list(prefix)]
        found = [(place[0].removeprefix(prefix), place[1], key) for key in keys if (place := layout.chunk_of(key))]
        return [key for _, _, key in sorted((int(one.rstrip("-") or 0), number, key) for one, number, key in found)]

    def _manifest(self, number: int) -> Manifest | None:
        """Return the manifest of a chunk; None if it was removed."""
        key = self._keys[number]

        def load() -> tuple[Manifest, int]:
            found = find_manifest(self._archived.store, key)
            if found is None:
                raise _ChunkRemoved
            return found, 5_000

        try:
            kept: Manifest = self._archived.cache.get(("archived chunk", key), load)
        except _ChunkRemoved:
            return None
        return kept

    def _last_key(self, number: int) -> LastKey | None:
        manifest = self._manifest(number)
        if manifest is None:
            raise KeyNotOrdered
        part = self._part(number, manifest)
        return None if part is None else last_key_of(chunk_of(manifest), part.schema, self._archived.key)

    def _part(self, number: int, manifest: Manifest) -> Part | None:
        """Return the file of a chunk; None if it has no rows, or the table had another key."""
        names = [column.name.lower() for column in self._archived.key]
        low = low_of(manifest)
        for file in manifest.files:
            schema = manifest.schemas[file.schema_id]
            if [name.lower() for name in schema.primary_key] == names:
                return Part(self._keys[number], file, schema, low, low.just_after())
        return None

    def _reads(self, number: int, key: RowKey) -> list[ChunkRow]:
        manifest = self._manifest(number)
        part = self._part(number, manifest) if manifest is not None else None
        if manifest is None or part is None:
            return []
        hits = {}
        for group, bounds in enumerate(self._bounds(part)):
            if all(bound.may_have(value) for bound, value in zip(bounds, key.order, strict=True)):
                found = self._keys_in(part, group).with_key(key)
                if len(found):
                    hits[group] = found
        tables = list(self._archived.decoded(part, hits)) if hits else []
        return [
            ChunkRow(KeyChanges(rows.slice(at, 1), (names_of(part),)), part.low, read_to_of(manifest), manifest.id)
            for rows in tables
            for at in range(rows.num_rows)
        ]

    def _bounds(self, part: Part) -> list[tuple[Bound, ...]]:
        """Return the bounds of the key columns in each row group of a file; unknown ones where it has no statistics."""

        def load() -> tuple[list[tuple[Bound, ...]], int]:
            path = path_of(part)
            with self._archived.removed(part), parquet_file(self._archived.store, path) as parquet:
                schema = parquet.schema_arrow
                numbers = [schema.names.index(name) for name in names_in(part.schema, self._archived.key)]
                groups = [
                    tuple(bound_of(parquet.metadata, group, number, schema.field(number).type) for number in numbers)
                    for group in range(parquet.metadata.num_row_groups)
                ]
            pairs = zip(numbers, self._archived.key, strict=True)
            same = [_ordered_alike(schema.field(number).type, column.type) for number, column in pairs]
            known = [tuple(b if is_same else Bound() for b, is_same in zip(one, same, strict=True)) for one in groups]
            return known, 500 + 300 * len(numbers) * len(known)

        found: list[tuple[Bound, ...]] = self._archived.cache.get(
            ("archived chunk's bounds", path_of(part), self._archived.key), load
        )
        return found

    def _keys_in(self, part: Part, group: int) -> KeyRows:
        def load() -> tuple[KeyRows, int]:
            keys = KeyRows.of(self._archived.keys_of(part, [group])[group], None)
            return keys, keys.bytes

        found: KeyRows = self._archived.cache.get(
            ("archived chunk's keys", path_of(part), group, self._archived.key), load
        )
        return found


class _ChunkRemoved(Exception):
    """Retention removed a chunk."""


def _ordered_alike(stored: pa.DataType, of: pa.DataType) -> bool:
    """Whether the statistics of a file bound the lake's values: an integer may have become wider."""
    return bool(stored == of or (pa.types.is_integer(stored) and pa.types.is_integer(of)))


def merged_snapshots(
    archived: ArchivedRows, source: str, table: TableName, marks: Iterable[SnapshotMark], floor: Point
) -> tuple[SnapshotChunks, ...]:
    """Return the snapshots whose rows are versions of a table, newest first.

    Args:
        archived: reads files of batches.
        source: name of the source.
        table: ``database.table`` at the source.
        marks: of the lake table's marker.
        floor: every change from here on is known. What was read before cannot be followed.
    """
    known = sorted((one for one in marks if one.complete and one.low >= floor), key=lambda one: one.low, reverse=True)
    return tuple(SnapshotChunks(archived, source, table, one) for one in known)


def deleted_by(snapshots: Sequence[SnapshotChunks], key: RowKey, last: Point) -> SnapshotChunks | None:
    """Return the first snapshot after the last version of a key that deleted the row; None if none did.

    Args:
        snapshots: of the table, newest first.
        key: a whole key.
        last: position of the last version.
    """
    later = (one for one in reversed(snapshots) if one.mark.low > last)
    return next((one for one in later if one.deletes(key)), None)


def reads_of(snapshots: Sequence[SnapshotChunks], key: RowKey, after: Point | None) -> list[ChunkRow]:
    """Return the rows of a key that snapshots read.

    Args:
        snapshots: of the table.
        key: a whole key.
        after: what was read before this point is not needed; None for all.
    """
    found = (one for each in snapshots if after is None or each.mark.high >= after for one in each.of_key(key))
    return [one for one in found if after is None or one.low >= after]
