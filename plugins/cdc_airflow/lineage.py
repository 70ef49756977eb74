"""Which tables a merge read and wrote, for lineage: from its cut and the manifests of its batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from cdc_lib.config import SourceConfig
from cdc_lib.lake.location import table_location
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.renames import newest_schema, renames_of
from cdc_lib.model.lake_table import MODE_COLUMNS, lake_type
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.route import routed_schema
from cdc_lib.model.row_counts import NO_ROWS, RowCounts
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified

Fields = tuple[tuple[str, str], ...]
"""Names and types of columns, in order."""


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A source table whose rows a merge brought.

    Args:
        namespace: the server, as OpenLineage names it.
        name: ``database.table``.
        fields: the columns that batches hold, with their types in a lake; empty where no batch of the merge has rows.
    """

    namespace: str
    name: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A lake table that a merge changed.

    Args:
        namespace: the object store of its location, or the catalog where that alone knows the location.
        name: path of its location, or its full name.
        table: its full name.
        catalog: the catalog that knows it by this name.
        fields: the columns that the merge wrote; the table may have others.
        rows: rows in the batches by kind of change; None where nobody counted.
        bytes: of the files that hold them.
        snapshot: Iceberg's id of its snapshot.
        sources: the source tables that it has rows of, those without changes too.
    """

    namespace: str
    name: str
    table: str
    catalog: str
    fields: Fields
    rows: RowCounts | None
    bytes: int
    snapshot: int
    sources: tuple[TableName, ...]


def read_tables(config: SourceConfig, cut: Cut, batches: Sequence[StoredBatch]) -> list[ReadTable]:
    """Return the source tables of which a cut has changes, by name."""
    namespace = f"mysql://{config.server.host}:{config.server.port}"
    tables = sorted({one.table for one in _changed(cut)})
    return [ReadTable(namespace, _bare(table), _fields(_schema(table, batches))) for table in tables]


def written_tables(config: SourceConfig, cut: Cut, batches: Sequence[StoredBatch]) -> list[WrittenTable]:
    """Return the lake tables that a merge changed, by name."""
    lakes = {str(lake.name): lake for lake in lake_merges(config, (one.table for one in cut.tables))}
    changed = sorted({one.lake_table for one in _changed(cut)} & lakes.keys())
    return [
        _written(config, lakes[name], [one for one in cut.tables if one.lake_table == name], batches)
        for name in changed
    ]


@dataclass(frozen=True, slots=True)
class VerifiedTo:
    """How far a lake table is known to be equal to its source: the weakest of its source tables counts.

    Args:
        clean: whether the last comparison of each source table found no drift.
        compared_at: when the one that was compared longest ago was compared.
        clean_at: when the one that was equal longest ago was equal; None if one of them never was.
        clean_position: position of the lake then, as ``epoch/file:offset``; None likewise.
    """

    clean: bool
    compared_at: datetime
    clean_at: datetime | None
    clean_position: str | None


def verified_to(written: WrittenTable, comparisons: Iterable[Verified]) -> VerifiedTo | None:
    """Return what the last comparisons say of a lake table; None if one of its source tables was never compared."""
    known = {one.table: one for one in comparisons if one.lake_table == written.table}
    found = [known[table] for table in written.sources if table in known]
    if not found or len(found) < len(written.sources):
        return None
    clean = [(one.clean_at, one) for one in found if one.clean_at is not None]
    at, least = min(clean, key=lambda pair: pair[0]) if len(clean) == len(found) else (None, None)
    return VerifiedTo(
        clean=all(one.clean for one in found),
        compared_at=min(one.at for one in found),
        clean_at=at,
        clean_position=f"{least.clean_epoch}/{least.clean_position}" if least is not None else None,
    )


def _written(
    config: SourceConfig, lake: LakeMerge, of_lake: Sequence[TableCut], batches: Sequence[StoredBatch]
) -> WrittenTable:
    location = table_location(config.lake.type, config.lake.warehouse, lake.name)
    catalog = f"{config.lake.type}:{config.lake.catalog}"
    cuts = [one for one in of_lake if one.changes]
    counts = [one.rows for one in cuts if one.rows is not None]
    tables = {one.table for one in cuts}
    namespace, name = _dataset_name(location) if location is not None else (catalog, str(lake.name))
    return WrittenTable(
        namespace=namespace,
        name=name,
        table=str(lake.name),
        catalog=catalog,
        fields=_written_fields(lake, cuts, batches),
        rows=sum(counts, NO_ROWS) if len(counts) == len(cuts) else None,
        bytes=sum(file.bytes for batch in batches for file in batch.manifest.files if file.table in tables),
        snapshot=cuts[0].lake_snapshot,
        sources=tuple(sorted({one.table for one in of_lake if one.dropped is None})),
    )


def _written_fields(lake: LakeMerge, cuts: Sequence[TableCut], batches: Sequence[StoredBatch]) -> Fields:
    """Return the columns of all source tables of a lake table, and those that say how far each row is."""
    found: dict[str, str] = {}
    changed = {one.table for one in cuts}
    for share in lake.routed_tables:
        if share.table in changed and (schema := _schema(share.table, batches)) is not None:
            found.update(_fields(routed_schema(schema, share.target)))
    mode = cuts[0].mode
    return (*found.items(), *((column, lake_type(column)) for column in (MODE_COLUMNS[mode] if mode else ())))


def _changed(cut: Cut) -> Iterable[TableCut]:
    return [one for one in cut.tables if one.changes]


def _schema(table: TableName, batches: Sequence[StoredBatch]) -> TableSchema | None:
    return newest_schema(table, batches, renames_of(table, batches))


def _fields(schema: TableSchema | None) -> Fields:
    return tuple((column.name, column.type.lake_type) for column in schema.columns) if schema is not None else ()


def _bare(table: TableName) -> str:
    """Return a name as others write it: OpenLineage quotes nothing."""
    return f"{table.database}.{table.table}"


def _dataset_name(location: str) -> tuple[str, str]:
    """Divide a location as OpenLineage names it: ``s3://bucket`` and a path; ``file`` and a path."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return "file", parts.path
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.lstrip("/")
