"""What drains of windows and snapshots read and wrote; without OpenLineage's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from cdc_airflow.lineage.datasets import (
    Dataset,
    Fields,
    ReadTable,
    bare,
    batches_dataset,
    fields_of,
    schema_of,
    source_dataset,
    sum_of,
)
from cdc_lib.config import SourceConfig
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.lake_table import CHANGE_TYPES
from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.store.layout import key_of


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The Parquet files of one table in some batches; rows of prepared XA transactions are not among them.

    Args:
        dataset: all batches of the table.
        fields: their columns, the change columns first.
        row_count: rows in the files.
        rows: the same by kind of change; None where nobody counted.
        bytes: of the files.
        files: how many.
        batch: id of the last of the batches.
    """

    dataset: Dataset
    fields: Fields
    row_count: int
    rows: RowCounts | None
    bytes: int
    files: int
    batch: str


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """The chunks of one table's snapshot that are stored.

    Args:
        table: ``database.table``.
        snapshot_id: id of the snapshot.
        epoch: epoch of the watermarks.
        chunks: how many.
        low_watermark: the least one: every change before it is in the rows.
        high_watermark: the greatest one: no change after it is in the rows.
        complete: whether the last chunk is among them, of each range of a divided snapshot.
    """

    table: str
    snapshot_id: str
    epoch: int
    chunks: int
    low_watermark: str
    high_watermark: str
    complete: bool


def drained_tables(config: SourceConfig, manifests: Sequence[Manifest]) -> list[ReadTable]:
    """Return the source tables of which batches have rows, or of which they are snapshots, by name."""
    batches = _batches(manifests)
    read = {one.chunk.table for one in manifests if one.chunk is not None}
    tables = sorted(read | _with_rows(manifests))
    return [ReadTable(source_dataset(config, table), fields_of(schema_of(table, batches))) for table in tables]


def stored_tables(config: SourceConfig, manifests: Sequence[Manifest]) -> list[StoredTable]:
    """Return the tables of which batches have rows, by name."""
    batches = _batches(manifests)
    return [_stored(config, table, batches) for table in sorted(_with_rows(manifests))]


def read_snapshots(manifests: Sequence[Manifest]) -> list[ReadSnapshot]:
    """Return the snapshots whose chunks are among batches, in the order of the batches.

    Args:
        manifests: the chunks of a snapshot follow one another, in order.
    """
    chunks = [(one.epoch, one.chunk) for one in manifests if one.chunk is not None]
    grouped = groupby(chunks, key=lambda pair: (pair[1].snapshot_id, pair[1].table))
    return [_read(list(pairs)) for _, pairs in grouped]


def _read(chunks: Sequence[tuple[int, SnapshotChunk]]) -> ReadSnapshot:
    epoch, first = chunks[0]
    ranges = {one.range_number for _, one in chunks if one.last}
    return ReadSnapshot(
        table=bare(first.table),
        snapshot_id=first.snapshot_id,
        epoch=epoch,
        chunks=len(chunks),
        low_watermark=str(min(one.low_watermark for _, one in chunks)),
        high_watermark=str(max(one.read_to for _, one in chunks)),
        complete=len(ranges) == first.range_count,
    )


def _stored(config: SourceConfig, table: TableName, batches: Sequence[StoredBatch]) -> StoredTable:
    holding = [batch for batch in batches if table in _with_rows([batch.manifest])]
    files = [file for batch in holding for file in batch.manifest.files if file.table == table]
    return StoredTable(
        dataset=batches_dataset(config, table),
        fields=(*CHANGE_TYPES.items(), *fields_of(schema_of(table, holding))),
        row_count=sum(file.rows for file in files),
        rows=sum_of([file.counts for file in files]),
        bytes=sum(file.bytes for file in files),
        files=len(files),
        batch=holding[-1].manifest.id,
    )


def _with_rows(manifests: Sequence[Manifest]) -> set[TableName]:
    return {file.table for one in manifests for file in one.files}


def _batches(manifests: Sequence[Manifest]) -> list[StoredBatch]:
    return [StoredBatch(key_of(one), one) for one in manifests]
