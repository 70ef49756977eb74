"""Reads the snapshots of tables into durable batches, in chunks by primary key."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.binlog.result_set import ResultSet
from cdc_lib.binlog.rows.masking import Masker, Shape
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.shape import stored_comments
from cdc_lib.drain.batch import at_fault, batch_writer
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import (
    ConfigError,
    TableReplaced,
    TableUnreadable,
    UnsupportedServer,
    UnsupportedValue,
)
from cdc_lib.model.comments import TableComments
from cdc_lib.model.manifest import DataFile, Manifest, SnapshotChunk
from cdc_lib.model.pace import Pace
from cdc_lib.model.position import Position
from cdc_lib.model.projection import Projection, can_be_chunked, refuse_masked_keys, whole
from cdc_lib.model.quarantine import Fault, QuarantinedTable
from cdc_lib.model.refusals import NO_SUCH_TABLE
from cdc_lib.model.results import DrainResult, result_of
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.binlog_stream import query
from cdc_lib.mysql.connection import Session, connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import facts_of_planned
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.ports import ObjectStore
from cdc_lib.snapshot import chunks
from cdc_lib.snapshot.columns import with_order
from cdc_lib.store import layout
from cdc_lib.store.manifests import chunks_of, last_chunk_of, publish_manifest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    """Reads the snapshots of one source.

    Args:
        config: of the source.
        credentials: log-in of the source.
        store: where batches go.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore

    @property
    def shape(self) -> Shape:
        """Which columns are stored, and with which masks."""
        return shape_of(self.config, self.credentials)

    def read(self, task: SnapshotTask, identity: ServerIdentity, until: datetime | None = None) -> DrainResult:
        """Read the chunks of one table, or of one range of it, that are not stored yet, one batch for each.

        Args:
            task: a unit: a snapshot, or one range of a divided one.
            identity: of the server.
            until: when the reading ends (UTC), after at least one chunk; a later call goes on. None: after the last chunk.

        Raises:
            ServerChanged: another server answers.
        """
        began = time.monotonic()
        count, last = last_chunk_of(self.store, task)
        written: list[Manifest] = []
        vanished = False
        rows = count * self.config.snapshot.chunk_rows
        pace = Pace(f"snapshot of {task.title}", "rows", 0, began, rows, rows)
        while last is None or not _chunk(last).last:
            if written and until is not None and until <= datetime.now(UTC):
                log.info("snapshot of %s: %d chunks are stored; the next run goes on", task.title, count)
                break
            try:
                last = self._next_chunk(task, identity, last, count, pace)
            except (UnsupportedValue, TableUnreadable) as error:
                if error.context.get("number") in NO_SUCH_TABLE and not vanished:
                    vanished = True  # dropped between reading its definition and its rows: try once more
                    continue
                last = self._last_chunk_at_fault(task, identity, error, count)
            written.append(last)
            count += 1
        stored = written or chunks_of(self.store, task)
        return result_of(task.id, stored, time.monotonic() - began, written=len(written))

    def _next_chunk(
        self, task: SnapshotTask, identity: ServerIdentity, before: Manifest | None, number: int, pace: Pace
    ) -> Manifest:
        key = layout.chunk_manifest_key(task, number)
        connection = connect(self.config.server, self.credentials)
        # Read again for each chunk: another server may answer meanwhile.
        facts = facts_of_planned(connection, self.config.server, identity, self.config.source)
        schema = InformationSchema(connection).schema(task.database, task.table)
        if schema is None:
            connection.close()
            return self._chunk_of_dropped(task, facts, number, key)
        if self._is_of_other_key(task, schema, connection):
            connection.close()
            return self._chunk_of_other_key(task, facts, number, key)
        projection = self._projection(self.config.values.applied(schema), connection.close)
        rows = self.config.snapshot.chunk_rows
        index = InformationSchema(connection).key_name(schema)
        comments = self._comments(connection, task) if number == 0 else ()
        if not pace.total and before is not None and task.selection is None:  # not for a table of one chunk
            pace.total = InformationSchema(connection).estimated_rows_of(schema) // len(task.ranges or (1,))
        watermark = low_watermark(connection, facts)
        after = _chunk(before).last_key if before else None
        # Read after the watermark: a greater key inserted later has its change after the watermark as well.
        upper = _chunk(before).upper_key if before else self._upper(schema, task, index)
        now = datetime.now(UTC)
        sql = chunks.select_chunk(projection.source, after, upper, rows, index, task.selection, task.range)
        # A unique name: the loser of a race for the manifest must not overwrite the winner's files.
        token = secrets.token_hex(4)
        path = layout.chunk_part_path(0).replace(".parquet", f"-{token}.parquet")
        with (
            query(self.config.server, connection, sql) as stream,
            batch_writer(self.config, self.store, key, lambda *_: path, projection.schema.primary_key) as writer,
        ):
            result = ResultSet(projection, stream, self.shape.masker, self.config.values)
            for table in result.groups():
                writer.write("0", projection.schema, with_order(table, task.epoch, watermark, now))
                if line := pace.tick(table.num_rows, time.monotonic()):
                    log.info("%s", line)
        high = self._high_watermark(identity)
        last_key = chunks.key_text(schema, result.last_key) if upper is not None and result.last_key else None
        chunk = replace(
            _empty_chunk(task, number, watermark), last_key=last_key, upper_key=upper,
            last=upper is None or result.rows < rows or last_key == upper, high_watermark=high, selection=task.selection,
        )  # fmt: skip
        manifest = _chunk_manifest(task, facts, chunk, projection.schema, writer.files, now)
        return publish_manifest(self.store, key, replace(manifest, comments=comments))

    def _comments(self, connection: Session, task: SnapshotTask) -> tuple[TableComments, ...]:
        """Return the table's comments if the lake keeps them."""
        carried = self.config.carries_comments(task.database, task.table)
        found = InformationSchema(connection).comments(task.database, task.table) if carried else None
        return (stored_comments(self.config, found),) if found is not None else ()

    def _high_watermark(self, identity: ServerIdentity) -> Position:
        """Return the end of the binlog after a SELECT: all changes that it saw lie before."""
        connection = connect(self.config.server, self.credentials)
        try:
            return read_binlog_end(
                connection, facts_of_planned(connection, self.config.server, identity, self.config.source)
            )
        finally:
            connection.close()

    def _last_chunk_at_fault(
        self, task: SnapshotTask, identity: ServerIdentity, error: UnsupportedValue | TableUnreadable, number: int
    ) -> Manifest:
        """End the snapshot of a table with invalid rows, if ``on_error`` quarantines it.

        Raises:
            UnsupportedValue, TableUnreadable: the error, if it stops the source.
        """
        connection = connect(self.config.server, self.credentials)
        try:
            facts = facts_of_planned(connection, self.config.server, identity, self.config.source)
        finally:
            connection.close()
        faults = at_fault(self.config, error, facts.binlog_end) if facts.binlog_end is not None else {}
        if task.name not in faults or facts.binlog_end is None:
            raise error
        key = layout.chunk_manifest_key(task, number)
        return self._last_chunk(task, facts, number, key, (QuarantinedTable(task.name, faults[task.name]),))

    def _is_of_other_key(self, task: SnapshotTask, schema: TableSchema, connection: Session) -> bool:
        """Whether the key, or the order of its values, has changed since the ranges were made: they no longer tile the keys."""
        if task.range is None:
            return False
        return chunks.key_definition(schema, InformationSchema(connection).collations(schema)) != task.range_key

    def _chunk_of_other_key(self, task: SnapshotTask, facts: ServerFacts, number: int, key: str) -> Manifest:
        """End the snapshot of a range in whose table keys have another order; the next plan takes a new snapshot of the table."""
        changed = TableReplaced(
            "its primary key was changed while it was read in ranges", hint="The table is read again automatically."
        )
        fault = Fault(self._binlog_end(task, facts), changed.code, changed.message, changed.hint)
        return self._last_chunk(task, facts, number, key, (QuarantinedTable(task.name, fault),))

    def _projection(self, schema: TableSchema, close: Callable[[], None]) -> Projection:
        """Return which columns to select; ``close`` is called before an error."""
        try:
            projection = self.shape.of(schema)
            refuse_masked_keys(projection)
        except ConfigError:
            close()
            raise
        return projection

    def _upper(self, schema: TableSchema, task: SnapshotTask, index: str) -> tuple[str, ...] | None:
        """Return the current greatest key, so that the snapshot of a growing table ends; None to read the rest in one chunk."""
        if not can_be_chunked(schema):
            return None
        connection = connect(self.config.server, self.credentials)
        # Between two bounds a server may sort all keys to find the greatest.
        sql = chunks.select_upper(schema, task.selection, task.range, index if task.range is not None else "")
        with query(self.config.server, connection, sql) as stream:
            policy = ValuePolicy(invalid_text="replace")
            result = ResultSet(whole(chunks.key_schema(schema)), stream, Masker(), policy)
            for _ in result.groups():
                pass
        return chunks.key_text(schema, result.last_key) if result.last_key else None

    def _chunk_of_dropped(self, task: SnapshotTask, facts: ServerFacts, number: int, key: str) -> Manifest:
        """Close the snapshot of a table that was dropped meanwhile: its DROP is in the binlog."""
        return self._last_chunk(task, facts, number, key)

    def _last_chunk(
        self,
        task: SnapshotTask,
        facts: ServerFacts,
        number: int,
        key: str,
        quarantined: tuple[QuarantinedTable, ...] = (),
    ) -> Manifest:
        """Close a snapshot, or one range of it, with a chunk without rows."""
        empty = TableSchema(task.database, task.table, ())
        chunk = replace(_empty_chunk(task, number, self._binlog_end(task, facts)), last=True)
        manifest = _chunk_manifest(task, facts, chunk, empty, (), datetime.now(UTC))
        return publish_manifest(self.store, key, replace(manifest, quarantined=quarantined))

    def _binlog_end(self, task: SnapshotTask, facts: ServerFacts) -> Position:
        if facts.binlog_end is None:
            raise UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.", table=task.name)
        return facts.binlog_end


def _empty_chunk(task: SnapshotTask, number: int, at: Position) -> SnapshotChunk:
    """Return a chunk of a unit that has read nothing."""
    return SnapshotChunk(
        task.snapshot_id, task.name, number, at, None, None, last=False,
        range_number=task.range_number or 0, range_count=len(task.ranges) or 1,
    )  # fmt: skip


def _chunk_manifest(
    task: SnapshotTask,
    facts: ServerFacts,
    chunk: SnapshotChunk,
    schema: TableSchema,
    files: tuple[DataFile, ...],
    at: datetime,
) -> Manifest:
    return Manifest(
        source=task.source,
        epoch=task.epoch,
        identity=facts.identity,
        window=None,
        chunk=chunk,
        gtid_first="",
        gtid_last="",
        first_time=at,
        last_time=at,
        transactions=0,
        events=0,
        files=files,
        schemas={schema.id: schema} if schema.columns else {},
    )


def _chunk(manifest: Manifest) -> SnapshotChunk:
    if manifest.chunk is None:
        msg = "a snapshot's manifest has a chunk"
        raise AssertionError(msg)
    return manifest.chunk
