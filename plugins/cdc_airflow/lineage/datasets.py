"""The tables and batches of a source by the names that OpenLineage gives to datasets; without its classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from cdc_lib.config import SourceConfig
from cdc_lib.lake.location import table_location
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.renames import newest_schema, renames_of
from cdc_lib.model.folder import folder_of
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.row_counts import NO_ROWS, RowCounts
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified

Fields = tuple[tuple[str, str], ...]
"""Names and types of columns, in order."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset, as OpenLineage identifies it.

    Args:
        namespace: the server, the object store, or the catalog.
        name: within it.
    """

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class LakeDataset:
    """A lake table as a dataset.

    Args:
        dataset: the object store of its location and the path there; catalog and full name where the catalog alone knows the location.
        table: its full name.
        catalog: the catalog that knows it by this name.
    """

    dataset: Dataset
    table: str
    catalog: str


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A source table whose rows a task read or brought.

    Args:
        dataset: the server, and ``database.table``.
        fields: the columns that batches hold, with their types in a lake; empty where no batch has rows.
    """

    dataset: Dataset
    fields: Fields = ()


def source_dataset(config: SourceConfig, table: TableName) -> Dataset:
    """Return a table at the source."""
    return Dataset(f"mysql://{config.server.host}:{config.server.port}", bare(table))


def lake_dataset(config: SourceConfig, name: LakeName) -> LakeDataset:
    """Return a lake table."""
    location = table_location(config.lake.type, config.lake.warehouse, name)
    catalog = f"{config.lake.type}:{config.lake.catalog}"
    dataset = _located(location) if location is not None else Dataset(catalog, str(name))
    return LakeDataset(dataset, str(name), catalog)


def batches_dataset(config: SourceConfig, table: TableName) -> Dataset:
    """Return all batches of a table in the store: one dataset, because each window has a folder of its own."""
    return _located(f"{config.store.url.rstrip('/')}/{config.source}/batches/{folder_of(*table.pair)}")


def fields_of(schema: TableSchema | None) -> Fields:
    """Return the columns of a table; none where its schema is not known."""
    return tuple((column.name, column.type.lake_type) for column in schema.columns) if schema is not None else ()


def schema_of(table: TableName, batches: Sequence[StoredBatch]) -> TableSchema | None:
    """Return the schema of a table's last rows; None where no batch has rows of it."""
    return newest_schema(table, batches, renames_of(table, batches))


def sum_of(counts: Collection[RowCounts | None]) -> RowCounts | None:
    """Return the sum; None where a part was not counted."""
    known = [one for one in counts if one is not None]
    return sum(known, NO_ROWS) if len(known) == len(counts) else None


def bare(table: TableName) -> str:
    """Return a name as others write it: OpenLineage quotes nothing."""
    return f"{table.database}.{table.table}"


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


def verified_to(lake_table: str, sources: Sequence[TableName], comparisons: Iterable[Verified]) -> VerifiedTo | None:
    """Return what the last comparisons say of a lake table; None if one of its source tables was never compared.

    Args:
        lake_table: its full name.
        sources: the source tables that it has rows of.
        comparisons: the last ones of the source.
    """
    known = {one.table: one for one in comparisons if one.lake_table == lake_table}
    found = [known[table] for table in sources if table in known]
    if not found or len(found) < len(sources):
        return None
    clean = [(one.clean_at, one) for one in found if one.clean_at is not None]
    at, least = min(clean, key=lambda pair: pair[0]) if len(clean) == len(found) else (None, None)
    return VerifiedTo(
        clean=all(one.clean for one in found),
        compared_at=min(one.at for one in found),
        clean_at=at,
        clean_position=f"{least.clean_epoch}/{least.clean_position}" if least is not None else None,
    )


def _located(location: str) -> Dataset:
    """Divide a location as OpenLineage names it: ``s3://bucket`` and a path; ``file`` and a path."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return Dataset("file", parts.path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return Dataset(f"{scheme}://{parts.netloc}", parts.path.lstrip("/"))
