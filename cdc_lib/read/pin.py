"""Pins a snapshot of an Iceberg table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from cdc_lib.errors import StoreError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_COLUMNS, MODE_PROPERTY
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import Columns
from cdc_lib.read.manifests import Files, files_of
from cdc_lib.read.snapshot import PinnedSnapshot, SnapshotParts

_OF_MODES = frozenset().union(*MODE_COLUMNS.values())


def pin(table: Table, name: str, cache: Cache, snapshot_id: int | None = None) -> PinnedSnapshot:
    """Read the manifests of a snapshot.

    Args:
        table: as the catalog has it.
        name: of the table, for errors.
        cache: keeps what is read of files.
        snapshot_id: a snapshot of the table; None for the current one.

    Raises:
        StoreError: the snapshot was expired, its files cannot be read, or need Spark.
    """
    metadata = table.metadata
    snapshot = _snapshot(metadata, snapshot_id, name)
    schema = _schema(metadata, snapshot_id, snapshot)
    with translate_errors(name):
        files = files_of(table.io, snapshot.manifest_list, cache) if snapshot is not None else Files((), {}, ())
    parts = SnapshotParts(
        name=name,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        mode=_mode(metadata, schema),
        columns=Columns(schema, name),
        key=_key_names(metadata, schema),
        files=files,
        io=table.io,
        cache=cache,
    )
    return PinnedSnapshot(parts)


def _snapshot(metadata: TableMetadata, snapshot_id: int | None, name: str) -> Snapshot | None:
    if snapshot_id is None:
        return metadata.current_snapshot()
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise expired(snapshot_id, name)
    return snapshot


def expired(snapshot_id: int, name: str) -> StoreError:
    """Return the error of a snapshot that is not in a table's metadata.

    Args:
        snapshot_id: the snapshot.
        name: of the table.
    """
    return StoreError(
        f"snapshot {snapshot_id} of the lake table does not exist any more",
        hint="Maintenance expired it: choose a later cut, and see maintenance.keep_snapshots_for.",
        table=name,
    )


def _schema(metadata: TableMetadata, snapshot_id: int | None, snapshot: Snapshot | None) -> Schema:
    """Return the schema as Iceberg chooses it: an old snapshot is read with its own one."""
    schema = None
    if snapshot_id is not None and snapshot is not None and snapshot.schema_id is not None:
        schema = metadata.schema_by_id(snapshot.schema_id)
    return schema or metadata.schema()


def _mode(metadata: TableMetadata, schema: Schema) -> str:
    """Return the mode of a snapshot with a schema: the table may have begun again in another one since."""
    now = metadata.properties.get(MODE_PROPERTY, "mirror")
    then, current = ({field.name for field in one.fields} & _OF_MODES for one in (schema, metadata.schema()))
    fitting = [mode for mode, columns in MODE_COLUMNS.items() if then >= {*columns}]
    return now if then == current else max(fitting, key=lambda mode: len(MODE_COLUMNS[mode]), default=now)


def _key_names(metadata: TableMetadata, schema: Schema) -> list[str]:
    """Return the key's columns by their names in a schema; they may have been renamed since. Empty without a key.

    A snapshot from before the table began again with another key has the key of then, if its schema names it.
    """
    current = metadata.schema()
    names: Sequence[str] = json.loads(metadata.properties.get(KEY_PROPERTY, "[]"))
    fields = {one.name: one.field_id for one in current.fields}
    ids = [fields[name] for name in names] or list(current.identifier_field_ids)
    by_id: dict[int, str] = {one.field_id: one.name for one in schema.fields}
    former = [by_id[one] for one in schema.identifier_field_ids]
    return [by_id[one] for one in ids] if ids and by_id.keys() >= set(ids) else former
