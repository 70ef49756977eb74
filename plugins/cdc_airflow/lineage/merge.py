"""What a merge read and wrote; without OpenLineage's classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_airflow.lineage.datasets import (
    Fields,
    LakeDataset,
    ReadTable,
    fields_of,
    lake_dataset,
    schema_of,
    source_dataset,
    sum_of,
)
from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.lake_table import MODE_COLUMNS, lake_type
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.route import routed_schema
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A lake table that a merge changed.

    Args:
        lake: the table.
        fields: the columns that the merge wrote; the table may have others.
        rows: rows in the batches by kind of change; None where nobody counted.
        bytes: of the files that hold them.
        snapshot: Iceberg's id of its snapshot.
        sources: the source tables that it has rows of, those without changes too.
    """

    lake: LakeDataset
    fields: Fields
    rows: RowCounts | None
    bytes: int
    snapshot: int
    sources: tuple[TableName, ...]


def read_tables(config: SourceConfig, cut: Cut, batches: Sequence[StoredBatch]) -> list[ReadTable]:
    """Return the source tables of which a cut has changes, by name."""
    tables = sorted({one.table for one in _changed(cut)})
    return [ReadTable(source_dataset(config, table), fields_of(schema_of(table, batches))) for table in tables]


def written_tables(config: SourceConfig, cut: Cut, batches: Sequence[StoredBatch]) -> list[WrittenTable]:
    """Return the lake tables that a merge changed, by name."""
    lakes = {str(lake.name): lake for lake in lake_merges(config, (one.table for one in cut.tables))}
    changed = sorted({one.lake_table for one in _changed(cut)} & lakes.keys())
    return [
        _written(config, lakes[name], [one for one in cut.tables if one.lake_table == name], batches)
        for name in changed
    ]


def _written(
    config: SourceConfig, lake: LakeMerge, of_lake: Sequence[TableCut], batches: Sequence[StoredBatch]
) -> WrittenTable:
    cuts = [one for one in of_lake if one.changes]
    tables = {one.table for one in cuts}
    return WrittenTable(
        lake=lake_dataset(config, lake.name),
        fields=_written_fields(lake, cuts, batches),
        rows=sum_of([one.rows for one in cuts]),
        bytes=sum(file.bytes for batch in batches for file in batch.manifest.files if file.table in tables),
        snapshot=cuts[0].lake_snapshot,
        sources=tuple(sorted({one.table for one in of_lake if one.dropped is None})),
    )


def _written_fields(lake: LakeMerge, cuts: Sequence[TableCut], batches: Sequence[StoredBatch]) -> Fields:
    """Return the columns of all source tables of a lake table, and those that say how far each row is."""
    found: dict[str, str] = {}
    changed = {one.table for one in cuts}
    for share in lake.routed_tables:
        if share.table in changed and (schema := schema_of(share.table, batches)) is not None:
            found.update(fields_of(routed_schema(schema, share.target)))
    mode = cuts[0].mode
    return (*found.items(), *((column, lake_type(column)) for column in (MODE_COLUMNS[mode] if mode else ())))


def _changed(cut: Cut) -> Iterable[TableCut]:
    return [one for one in cut.tables if one.changes]
