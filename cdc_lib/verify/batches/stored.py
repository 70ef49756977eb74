"""Reads the changes of a batch from its Parquet files, in the order of the binlog, a few thousand at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import pyarrow as pa

from cdc_lib.model.manifest import BINLOG, GTID, OFFSET, OP, ROW, DataFile, Manifest
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import parquet_file
from cdc_lib.verify.batches.places import Place, StoredChange

_ROWS = 4096
"""Rows that are in memory as Python values, per file."""


def stored_changes(store: ObjectStore, manifest: Manifest) -> Mapping[TableName, Iterator[StoredChange]]:
    """Return the changes of each table of a batch; a file is opened when its first change is asked for.

    Rows of prepared XA transactions are not among them.

    Raises:
        CorruptBatch: while iterating: a file is missing or is not a Parquet file.
    """
    key = layout.key_of(manifest)
    by_table: dict[TableName, list[Iterator[StoredChange]]] = {}
    for file in manifest.files:
        changes = _changes(store, layout.beside(key, file.path), file, manifest.schemas[file.schema_id])
        by_table.setdefault(file.table, []).append(changes)
    return {table: heapq.merge(*files, key=_place) for table, files in by_table.items()}


def _place(change: StoredChange) -> Place:
    return change.place


def _changes(store: ObjectStore, key: str, file: DataFile, schema: TableSchema) -> Iterator[StoredChange]:
    names = [column.name for column in schema.columns]
    with parquet_file(store, key) as parquet:
        for batch in parquet.iter_batches(_ROWS, columns=[BINLOG, OFFSET, ROW, OP, GTID, *names]):
            places = (batch.column(name).to_pylist() for name in (BINLOG, OFFSET, ROW))
            marks = (batch.column(name).to_pylist() for name in (OP, GTID))
            cells = [_values(batch.column(name)) for name in names]
            for place, op, gtid, row in zip(zip(*places, strict=True), *marks, zip(*cells, strict=True), strict=True):
                yield StoredChange(Place(*place), op, gtid, row, file.path, schema)


def _values(column: pa.Array) -> list[object]:
    """Return Python values; of dates and times numbers, because Python does not have the year 0."""
    if pa.types.is_date32(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())
