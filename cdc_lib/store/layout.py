"""Where everything lies below the base of an object store. No other file joins keys.

::

    <source>/batches/<epoch>/<window id>/manifest.json
    <source>/batches/<epoch>/<window id>/<database.table>/part-00000.parquet
    <source>/batches/<epoch>/<window id>/<database.table>/prepared-00000.parquet
    <source>/batches/<epoch>/<window id>/quarantine/<database.table>.events.zst
    <source>/snapshots/<snapshot id>/<database.table>/<chunk>/manifest.json
    <source>/snapshots/<snapshot id>/<database.table>/<chunk>/part-00000.parquet
    <source>/snapshots/reselect/<database.table>/<token>/part-00000.parquet
    <source>/cursors/<consumer>.json
    <source>/cursors/replaced/<consumer>/<generation>-<writer>.json
    <source>/cuts/<merge id>.json
    <source>/verified/<database.table>/<lake table>.json
    <source>/stopped.json
    <source>/schemas/<epoch>/tables/<database.table>/<file>.<offset>-<kind>.json
    <source>/schemas/<epoch>/databases/<database>/<file>.<offset>-<kind>.json

Epochs and chunks are six digits wide, so that a listing comes in the order of the stream.
"""

from __future__ import annotations

import re
from typing import Literal

from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.folder import folder_of
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window

MANIFEST = "manifest.json"
"""Name of the document that makes a batch exist."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,149}")


def _name(what: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a {what}",
            hint="Letters, digits, _ . + - and at most 150 of them, beginning with a letter or a digit.",
        )
    return name


def table_folder(table: str) -> str:
    """Return a table as one part of a key: ``shop.orders``, see :func:`cdc_lib.model.folder.folder_of`.

    The manifest holds the name as it is; nothing reads it back from a key.
    """
    return folder_of(*TableName.parse(table).pair)


def batches_prefix(source: str, epoch: int | None = None) -> str:
    """Return what the keys of all batches of the binlog begin with, of one epoch if it is given."""
    prefix = f"{_name('source', source)}/batches/"
    return prefix if epoch is None else f"{prefix}{epoch:06d}/"


def manifest_key(window: Window) -> str:
    """Return the key of a window's manifest."""
    return f"{batches_prefix(window.source, window.epoch)}{window.id}/{MANIFEST}"


def snapshots_prefix(source: str) -> str:
    """Return what the keys of all snapshot chunks begin with."""
    return f"{_name('source', source)}/snapshots/"


def snapshot_prefix(task: SnapshotTask) -> str:
    """Return what the keys of all chunks of all tables begin with whose snapshots were asked for at the same place."""
    return f"{snapshots_prefix(task.source)}{_name('snapshot', task.snapshot_id)}/"


def chunks_prefix(task: SnapshotTask) -> str:
    """Return what the keys of all chunks of one table's snapshot begin with."""
    return f"{snapshot_prefix(task)}{table_folder(task.name)}/"


def chunk_of(key: str) -> tuple[str, int] | None:
    """Return the prefix of a table's chunks and the chunk's number, for the key of a chunk's manifest; None for another."""
    folder, _, name = key.rpartition("/")
    prefix, _, number = folder.rpartition("/")
    return (f"{prefix}/", int(number)) if name == MANIFEST and number.isdigit() else None


def chunk_manifest_key(task: SnapshotTask, number: int) -> str:
    """Return the key of the manifest of one chunk, counted from 0."""
    return f"{chunks_prefix(task)}{number:06d}/{MANIFEST}"


def reselected_key(source: str, table: str, token: str) -> str:
    """Return where the manifest would be of rows that a merge re-selects: it is never written."""
    return f"{snapshots_prefix(source)}reselect/{table_folder(table)}/{token}/{MANIFEST}"


def key_of(manifest: Manifest) -> str:
    """Return the key under which a manifest belongs."""
    if manifest.window is not None:
        return manifest_key(manifest.window)
    if manifest.chunk is None:
        raise ConfigError("a manifest needs a window or a chunk", source=manifest.source)
    chunk = manifest.chunk
    task = SnapshotTask(manifest.source, manifest.epoch, chunk.snapshot_id, *TableName.parse(chunk.table).pair)
    return chunk_manifest_key(task, chunk.number)


def part_path(table: str, number: int) -> str:
    """Return where a window's Parquet file of one table lies below the folder of its manifest."""
    return f"{table_folder(table)}/{chunk_part_path(number)}"


def prepared_path(table: str, number: int) -> str:
    """Return where a window's Parquet file of a table's prepared XA transactions lies below the manifest's folder."""
    return f"{table_folder(table)}/prepared-{number:05d}.parquet"


def chunk_part_path(number: int) -> str:
    """Return where a chunk's Parquet file lies below the folder of its manifest."""
    return f"part-{number:05d}.parquet"


def raw_events_path() -> str:
    """Return where the raw events of a whole window lie below the folder of its manifest."""
    return "raw/events.zst"


def raw_facts_path(digest: str) -> str:
    """Return where that lies which is needed to decode them: two drains may get other answers of the server."""
    return f"raw/facts-{digest[:16]}.json"


def beside(manifest: str, path: str) -> str:
    """Return the key of a file whose path its manifest gives.

    Args:
        manifest: key of the manifest.
        path: :attr:`cdc_lib.model.manifest.DataFile.path`.
    """
    folder, _, _ = manifest.rpartition("/")
    return f"{folder}/{path}"


def manifest_in(folder: str) -> str:
    """Return the key of the manifest of a batch that lies in a folder."""
    return f"{folder}/{MANIFEST}"


def cursors_prefix(source: str) -> str:
    """Return what the keys of all cursors of a source begin with."""
    return f"{_name('source', source)}/cursors/"


def cursor_key(source: str, consumer: str) -> str:
    """Return the key of a consumer's cursor."""
    return f"{cursors_prefix(source)}{_name('consumer', consumer)}.json"


def replaced_cursors_prefix(source: str, consumer: str) -> str:
    """Return what the keys of all documents begin with that stood in the place of a cursor before."""
    return f"{cursors_prefix(source)}replaced/{_name('consumer', consumer)}/"


def replaced_cursor_key(cursor: Cursor) -> str:
    """Return where a cursor document is kept after another took its place."""
    return f"{replaced_cursors_prefix(cursor.source, cursor.consumer)}{cursor.generation:06d}-{cursor.writer[:8] or 'nobody'}.json"


def cuts_prefix(source: str) -> str:
    """Return what the keys of all cuts of a source begin with."""
    return f"{_name('source', source)}/cuts/"


def cut_key(source: str, merge_id: str) -> str:
    """Return the key of the cut that a merge publishes."""
    return f"{cuts_prefix(source)}{_name('merge', merge_id)}.json"


def verified_prefix(source: str) -> str:
    """Return what the keys of all comparisons with a source begin with."""
    return f"{_name('source', source)}/verified/"


def verified_key(source: str, table: str, lake_table: str) -> str:
    """Return the key of the last comparison of a source table with a lake table."""
    return f"{verified_prefix(source)}{table_folder(table)}/{folder_of(lake_table)}.json"


def stopped_key(source: str) -> str:
    """Return the key of the tables that stopped in the last merge of a source."""
    return f"{_name('source', source)}/stopped.json"


def complete_key(source: str) -> str:
    """Return the key of when the lake of a source last had everything."""
    return f"{_name('source', source)}/complete.json"


def foreign_key(source: str) -> str:
    """Return the key of the foreign commits that merges of a source came upon."""
    return f"{_name('source', source)}/foreign.json"


VersionKind = Literal["ddl", "lost", "read"]
"""How a schema version came about: followed from a statement, not known from here on, read from the server.

In the order in which they sort: at one position what was read counts before what was lost.
"""


def schemas_prefix(source: str, epoch: int) -> str:
    """Return what the keys of all schema versions of an epoch begin with."""
    return f"{_name('source', source)}/schemas/{epoch:06d}/"


def versions_prefix(source: str, epoch: int, database: str, table: str) -> str:
    """Return what the keys of a table's versions begin with; of the database's own when the table is empty."""
    name = f"tables/{table_folder(TableName(database, table))}" if table else f"databases/{folder_of(database)}"
    return f"{schemas_prefix(source, epoch)}{name}/"


def version_key(version: SchemaVersion) -> str:
    """Return the key of a schema version."""
    kind: VersionKind = "lost" if version.definition is None else "ddl" if version.statement else "read"
    prefix = versions_prefix(version.source, version.epoch, version.database, version.table)
    return f"{prefix}{version.position.sortable}-{kind}.json"
