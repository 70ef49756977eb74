"""The object keys of a source, relative to the base of the store. No other file joins keys.

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
    <source>/coverage/<database.table>/<lake table>.json
    <source>/erasures/<database.table>.json
    <source>/batch_checks.json
    <source>/after_merge.json
    <source>/stopped.json
    <source>/answers/<database.table>/<epoch>-<file>.<offset>-<kind>.json
    <source>/schemas/<epoch>/tables/<database.table>/<file>.<offset>-<kind>.json
    <source>/schemas/<epoch>/databases/<database>/<file>.<offset>-<kind>.json

Epochs and chunks have six digits, the ranges of a divided snapshot three before them (``002-000007``), so that a listing is in
the order of the stream.
"""

from __future__ import annotations

import re
from typing import Literal

from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.folder import folder_of
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.schema_question import SchemaQuestion
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window

MANIFEST = "manifest.json"
"""File name of a batch's manifest."""
CLOCK = "clock"
"""Name of the object whose time is the store's."""

_DEPTHS = {"batches": 4, "snapshots": 5}
"""Number of parts of the key of a batch's folder, by the second part."""
_CHUNK = re.compile(rf"(?P<prefix>.*/(\d{{3,}}-)?)(?P<number>\d+)/{re.escape(MANIFEST)}")
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

    The manifest has the original name; a key is never parsed for it.
    """
    return folder_of(*TableName.parse(table).pair)


def batches_prefix(source: str, epoch: int | None = None) -> str:
    """Return the prefix of all binlog batches, or of those of one epoch."""
    prefix = f"{_name('source', source)}/batches/"
    return prefix if epoch is None else f"{prefix}{epoch:06d}/"


def manifest_key(window: Window) -> str:
    """Return the key of a window's manifest."""
    return f"{batches_prefix(window.source, window.epoch)}{window.id}/{MANIFEST}"


def snapshots_prefix(source: str) -> str:
    """Return the prefix of all snapshot chunks."""
    return f"{_name('source', source)}/snapshots/"


def snapshot_prefix(task: SnapshotTask) -> str:
    """Return the prefix of the chunks of all tables with this snapshot id."""
    return f"{snapshots_prefix(task.source)}{_name('snapshot', task.snapshot_id)}/"


def snapshot_of(key: str) -> str:
    """Return the id of the snapshot from the key of a chunk; empty for another key."""
    _, kind, snapshot_id, *rest = [*key.split("/"), "", ""]
    return snapshot_id if kind == "snapshots" and len(rest) > 2 and snapshot_id != "reselect" else ""


def chunks_prefix(task: SnapshotTask) -> str:
    """Return the prefix of the chunks of one table's snapshot."""
    return f"{snapshot_prefix(task)}{table_folder(task.name)}/"


def range_prefix(task: SnapshotTask) -> str:
    """Return what the keys of the chunks of one unit begin with: of the range that it reads, or of the whole table."""
    return chunks_prefix(task) if task.range_number is None else f"{chunks_prefix(task)}{task.range_number:03d}-"


def chunk_of(key: str) -> tuple[str, int] | None:
    """Return the :func:`range_prefix` and the chunk number from the key of a chunk's manifest; None for another key."""
    found = _CHUNK.fullmatch(key)
    return (found["prefix"], int(found["number"])) if found is not None else None


def chunk_manifest_key(task: SnapshotTask, number: int) -> str:
    """Return the key of the manifest of one chunk, counted from 0.

    Args:
        task: a unit. Of a divided snapshot's task, the acknowledged chunks are counted range after range.
        number: of the chunk.
    """
    if task.ranges and task.range_number is None:
        for part, one in zip(task.parts, task.ranges, strict=True):
            if number < one.chunks:
                return chunk_manifest_key(part, number)
            number -= one.chunks
        raise IndexError(number)
    return f"{range_prefix(task)}{number:06d}/{MANIFEST}"


def reselected_key(source: str, table: str, token: str) -> str:
    """Return the key of a manifest for re-selected rows; that manifest is never written."""
    return f"{snapshots_prefix(source)}reselect/{table_folder(table)}/{token}/{MANIFEST}"


def key_of(manifest: Manifest) -> str:
    """Return the key of a manifest."""
    if manifest.window is not None:
        return manifest_key(manifest.window)
    if manifest.chunk is None:
        raise ConfigError("a manifest needs a window or a chunk", source=manifest.source)
    chunk = manifest.chunk
    task = SnapshotTask(manifest.source, manifest.epoch, chunk.snapshot_id, *TableName.parse(chunk.table).pair)
    return f"{chunks_prefix(task)}{chunk.folder}/{MANIFEST}"


def part_path(table: str, number: int) -> str:
    """Return the path of a table's Parquet file in a window, below the folder of the manifest."""
    return f"{table_folder(table)}/{chunk_part_path(number)}"


def prepared_path(table: str, number: int) -> str:
    """Return the path of a table's Parquet file of prepared XA transactions, below the folder of the manifest."""
    return f"{table_folder(table)}/prepared-{number:05d}.parquet"


def chunk_part_path(number: int) -> str:
    """Return the path of a chunk's Parquet file, below the folder of its manifest."""
    return f"part-{number:05d}.parquet"


def raw_prefix() -> str:
    """Return the prefix of the files of a window's raw archive, below the folder of its manifest."""
    return "raw/"


def raw_events_path() -> str:
    """Return the path of a window's raw events, below the folder of its manifest."""
    return f"{raw_prefix()}events.zst"


def raw_facts_path(digest: str) -> str:
    """Return the path of the facts for decoding them; it has a digest, because two drains may read different facts."""
    return f"{raw_prefix()}facts-{digest[:16]}.json"


def is_raw_facts(key: str) -> bool:
    """Whether a key is that of facts for decoding raw events."""
    return "/raw/facts-" in key and key.endswith(".json")


def beside(manifest: str, path: str) -> str:
    """Return the key of a file that its manifest names.

    Args:
        manifest: key of the manifest.
        path: :attr:`cdc_lib.model.manifest.DataFile.path`.
    """
    folder, _, _ = manifest.rpartition("/")
    return f"{folder}/{path}"


def batch_folder(key: str) -> str:
    """Return the folder of the batch or chunk that an object belongs to, or is the folder of; empty for other objects."""
    parts = key.split("/")
    depth = _DEPTHS.get(parts[1], 0) if len(parts) > 1 else 0
    return "/".join(parts[:depth]) if depth and len(parts) > depth else ""


def manifest_in(folder: str) -> str:
    """Return the key of the manifest in a batch's folder."""
    return f"{folder}/{MANIFEST}"


def cursors_prefix(source: str) -> str:
    """Return the prefix of all cursors of a source."""
    return f"{_name('source', source)}/cursors/"


def cursor_key(source: str, consumer: str) -> str:
    """Return the key of a consumer's cursor."""
    return f"{cursors_prefix(source)}{_name('consumer', consumer)}.json"


def replaced_cursors_prefix(source: str, consumer: str) -> str:
    """Return the prefix of the replaced documents of a cursor."""
    return f"{cursors_prefix(source)}replaced/{_name('consumer', consumer)}/"


def replaced_cursor_key(cursor: Cursor) -> str:
    """Return the key of a cursor document after its replacement."""
    return f"{replaced_cursors_prefix(cursor.source, cursor.consumer)}{cursor.generation:06d}-{cursor.writer[:8] or 'nobody'}.json"


def clock_key(source: str) -> str:
    """Return the key of an empty object whose time shows the store's clock."""
    return f"{_name('source', source)}/{CLOCK}"


def cuts_prefix(source: str) -> str:
    """Return the prefix of all cuts of a source."""
    return f"{_name('source', source)}/cuts/"


def cut_key(source: str, merge_id: str) -> str:
    """Return the key of the cut that a merge publishes."""
    return f"{cuts_prefix(source)}{_name('merge', merge_id)}.json"


def verified_prefix(source: str) -> str:
    """Return the prefix of all comparisons with a source."""
    return f"{_name('source', source)}/verified/"


def verified_key(source: str, table: str, lake_table: str) -> str:
    """Return the key of the last comparison of a source table with a lake table."""
    return f"{verified_prefix(source)}{table_folder(table)}/{folder_of(lake_table)}.json"


def batch_checks_key(source: str) -> str:
    """Return the key of the windows that were decoded a second time."""
    return f"{_name('source', source)}/batch_checks.json"


def coverage_prefix(source: str) -> str:
    """Return the prefix of the coverage of all tables by rolling comparisons."""
    return f"{_name('source', source)}/coverage/"


def coverage_key(source: str, table: str, lake_table: str) -> str:
    """Return the key of the coverage of one source table and its lake table."""
    return f"{coverage_prefix(source)}{table_folder(table)}/{folder_of(lake_table)}.json"


def erasures_prefix(source: str) -> str:
    """Return the prefix of all erasures of a source."""
    return f"{_name('source', source)}/erasures/"


def erasures_key(source: str, table: TableName) -> str:
    """Return the key of the erasures of a table."""
    return f"{erasures_prefix(source)}{table_folder(table)}.json"


def after_merge_key(source: str) -> str:
    """Return the key of what is known of the rows that merges of a source changed."""
    return f"{_name('source', source)}/after_merge.json"


def stopped_key(source: str) -> str:
    """Return the key of the tables that stopped in the last merge of a source."""
    return f"{_name('source', source)}/stopped.json"


def answers_prefix(source: str) -> str:
    """Return the prefix of all answers about schema changes of a source."""
    return f"{_name('source', source)}/answers/"


def answer_key(source: str, question: SchemaQuestion) -> str:
    """Return the key of the answer about one statement of one table."""
    return f"{answers_prefix(source)}{table_folder(question.table)}/{question.point.sortable}-{question.kind}.json"


def complete_key(source: str) -> str:
    """Return the key of the document with the time when the lake last had every change."""
    return f"{_name('source', source)}/complete.json"


def sealed_days_key(source: str) -> str:
    """Return the key of the document with the last day that was announced as complete."""
    return f"{_name('source', source)}/sealed_days.json"


def server_observation_key(source: str) -> str:
    """Return the key of what the last plan of a source saw at the server."""
    return f"{_name('source', source)}/observed/server.json"


def drain_observation_key(source: str) -> str:
    """Return the key of the last unit of a source that was drained."""
    return f"{_name('source', source)}/observed/drain.json"


def tables_observation_key(source: str) -> str:
    """Return the key of the definitions that the last plan of a source looked at."""
    return f"{_name('source', source)}/observed/tables.json"


def task_retries_key(source: str) -> str:
    """Return the key of how often tasks of a source were tried again."""
    return f"{_name('source', source)}/observed/retries.json"


def foreign_key(source: str) -> str:
    """Return the key of the foreign commits that merges of a source found."""
    return f"{_name('source', source)}/foreign.json"


VersionKind = Literal["ddl", "lost", "read", "unseen"]
"""Origin of a schema version: derived from a DDL statement, unknown from here on, read from the server, or changed unseen.

In sort order: at one position a version that was read wins over an unknown one, and a later unseen change over both.
"""


def schemas_prefix(source: str, epoch: int) -> str:
    """Return the prefix of all schema versions of an epoch."""
    return f"{_name('source', source)}/schemas/{epoch:06d}/"


def versions_prefix(source: str, epoch: int, database: str, table: str) -> str:
    """Return the prefix of a table's schema versions; of the database's if the table is empty."""
    name = f"tables/{table_folder(TableName(database, table))}" if table else f"databases/{folder_of(database)}"
    return f"{schemas_prefix(source, epoch)}{name}/"


def table_versions_prefix(source: str, epoch: int, table: str) -> str:
    """Return what the keys of the versions of a table begin with, which is named as :class:`TableName` writes it."""
    return versions_prefix(source, epoch, *TableName.parse(table).pair)


def version_key(version: SchemaVersion) -> str:
    """Return the key of a schema version."""
    kind: VersionKind = "lost" if version.definition is None else "ddl" if version.statement else "read"
    prefix = versions_prefix(version.source, version.epoch, version.database, version.table)
    if version.unseen:
        kind = "unseen"
        return f"{prefix}{version.position.sortable}-{kind}{version.unseen:06d}.json"
    return f"{prefix}{version.position.sortable}-{kind}.json"
