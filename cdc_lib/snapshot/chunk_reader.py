"""Reads one chunk of a table: the SELECT between two watermarks, and the batch that holds its rows."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from cdc_lib.binlog.result_set import ResultSet
from cdc_lib.binlog.rows.captured_tables import as_fault
from cdc_lib.binlog.rows.masking import Masker, Shape
from cdc_lib.config.shape import stored_comments
from cdc_lib.drain.batch import at_fault, batch_writer
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import (
    ConfigError,
    TableReplaced,
    TableUnreadable,
    UnsupportedValue,
)
from cdc_lib.model.comments import TableComments
from cdc_lib.model.manifest import DataFile, Manifest, SnapshotChunk
from cdc_lib.model.pace import Pace
from cdc_lib.model.position import Position
from cdc_lib.model.projection import Projection, can_be_chunked, refuse_masked_keys, whole
from cdc_lib.model.quarantine import Fault, QuarantinedTable
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.binlog_stream import query
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import facts_of_planned
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.watermark import Watermarks
from cdc_lib.snapshot import chunks
from cdc_lib.snapshot.columns import with_order
from cdc_lib.snapshot.exact import ExactPosition, keeps_each_change
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import publish_manifest
from cdc_lib.store.parquet import BatchWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk whose rows were read. It does not exist before it is published.

    Args:
        chunk: which keys it has; its high watermark is read when it is published.
        publish: completes the batch and returns the stored manifest, which another task may have written.
        files: what is being written of it.
    """

    chunk: SnapshotChunk
    publish: Callable[[], Manifest]
    files: ExitStack

    def discard(self) -> None:
        """Abort the files."""
        self.files.__exit__(_Discarded, _Discarded(), None)


class _Discarded(Exception):
    """Ends the writer of a chunk that is not published."""


@dataclass(frozen=True, slots=True)
class ChunkReader:
    """Reads the chunks of one unit: a snapshot, or one range of a divided one.

    Args:
        source: the source.
        task: the unit.
        identity: of the server.
        pace: of the unit; it learns the number of rows from the server.
        watermarks: of the table's SELECTs.
        mask_lost: called while a SELECT holds the table, before a row is stored: the table if it has rows of a masked one.
    """

    source: Source
    task: SnapshotTask
    identity: ServerIdentity
    pace: Pace
    watermarks: Watermarks
    mask_lost: Callable[[], tuple[QuarantinedTable, ...]]

    @property
    def shape(self) -> Shape:
        """Which columns are stored, and with which masks."""
        return shape_of(self.source.config, self.source.credentials)

    def read(self, before: SnapshotChunk | None, number: int) -> ReadChunk:
        """Read the rows of the next chunk.

        Args:
            before: the chunk before it.
            number: of the next one.

        Raises:
            ServerChanged: another server answers.
            UnsupportedValue: the lake cannot represent a value exactly.
            TableUnreadable: the server refuses to read the table.
        """
        for tries in count():
            if (chunk := self._read(before, number, tries)) is not None:
                return chunk
        raise AssertionError(tries)

    def _read(self, before: SnapshotChunk | None, number: int, tries: int) -> ReadChunk | None:
        """Read the rows of the next chunk; None if their position is not exact, and must be."""
        task = self.task
        connection = self.source.connect()
        # Read again for each chunk: another server may answer meanwhile.
        facts = self._facts(connection)
        schema = InformationSchema(connection).schema(task.database, task.table)
        if schema is None:
            connection.close()
            return self._last_chunk(facts, number)  # dropped meanwhile: its DROP is in the binlog
        if self._is_of_other_key(schema, connection):
            connection.close()
            return self._chunk_of_other_key(facts, number)
        projection = self._projection(self.source.config.values.applied(schema), connection.close)
        rows = self.source.config.snapshot.chunk_rows
        index = InformationSchema(connection).key_name(schema)
        comments = self._comments(connection) if number == 0 else ()
        if not self.pace.total and before is not None and task.selection is None:  # not for a table of one chunk
            self.pace.total = InformationSchema(connection).estimated_rows_of(schema) // len(task.ranges or (1,))
        if (watermark := self._low_watermark(connection, facts, schema, tries)) is None:
            connection.close()
            return None
        after = before.last_key if before else None
        # Read after the watermark: a greater key inserted later has its change after the watermark as well.
        upper = before.upper_key if before else self._upper(schema, index)
        now = datetime.now(UTC)
        sql = chunks.select_chunk(projection.source, after, upper, rows, index, task.selection, task.range)
        with query(self.source.config.server, connection, sql) as stream, ExitStack() as files:
            writer = files.enter_context(self._writer(number, projection))
            result = ResultSet(projection, stream, self.shape.masker, self.source.config.values)
            for number_of_group, table in enumerate(result.groups()):
                if number_of_group == 0 and (lost := self.mask_lost()):
                    return self._last_chunk(facts, number, lost)
                writer.write("0", projection.schema, with_order(table, task.epoch, watermark, now))
                if line := self.pace.tick(table.num_rows, time.monotonic()):
                    log.info("%s", line)
            last_key = chunks.key_text(schema, result.last_key) if upper is not None and result.last_key else None
            chunk = replace(
                self._empty_chunk(number, watermark), last_key=last_key, upper_key=upper,
                last=upper is None or result.rows < rows or last_key == upper, selection=task.selection,
            )  # fmt: skip
            kept = files.pop_all()

        def publish() -> Manifest:
            kept.close()
            complete = replace(chunk, high_watermark=self._high_watermark())
            manifest = self._manifest(facts, complete, projection.schema, writer.files, now)
            return self._published(number, replace(manifest, comments=comments))

        return ReadChunk(chunk, publish, kept)

    def last_at_fault(self, error: UnsupportedValue | TableUnreadable, number: int) -> ReadChunk:
        """End the snapshot of a table with invalid rows, if ``on_error`` quarantines it.

        Raises:
            UnsupportedValue, TableUnreadable: the error, if it stops the source.
        """
        connection = self.source.connect()
        try:
            facts = self._facts(connection)
        finally:
            connection.close()
        faults = at_fault(self.source.config, error, facts.binlog_end) if facts.binlog_end is not None else {}
        if self.task.name not in faults or facts.binlog_end is None:
            raise error
        return self._last_chunk(facts, number, (QuarantinedTable(self.task.name, faults[self.task.name]),))

    def _facts(self, connection: Session) -> ServerFacts:
        return facts_of_planned(connection, self.source.config.server, self.identity, self.source.name)

    def _writer(self, number: int, projection: Projection) -> BatchWriter:
        # A unique name: the loser of a race for the manifest must not overwrite the winner's files.
        path = layout.chunk_part_path(0).replace(".parquet", f"-{secrets.token_hex(4)}.parquet")
        key = layout.chunk_manifest_key(self.task, number)
        return batch_writer(self.source.config, self.source.store, key, lambda *_: path, projection.schema.primary_key)

    def _comments(self, connection: Session) -> tuple[TableComments, ...]:
        """Return the table's comments if the lake keeps them."""
        carried = self.source.config.carries_comments(*self.task.name.pair)
        found = InformationSchema(connection).comments(*self.task.name.pair) if carried else None
        return (stored_comments(self.source.config, found),) if found is not None else ()

    def _low_watermark(
        self, connection: Session, facts: ServerFacts, schema: TableSchema, tries: int
    ) -> Position | None:
        """Return the low watermark of the next SELECT; None if it must be exact and is not."""
        if not keeps_each_change(self.source.config, schema):
            return self.watermarks.before_select(connection, facts, schema)
        exact = ExactPosition(self.source, facts, self.task.epoch, self.watermarks)
        return exact.before_select(connection, schema, tries)

    def _high_watermark(self) -> Position:
        """Return the end of the binlog after a SELECT: all changes that it saw lie before."""
        connection = self.source.connect()
        try:
            return read_binlog_end(connection, self._facts(connection))
        finally:
            connection.close()

    def _is_of_other_key(self, schema: TableSchema, connection: Session) -> bool:
        """Whether the key, or the order of its values, has changed since the ranges were made: they no longer tile the keys."""
        if self.task.range is None:
            return False
        return chunks.key_definition(schema, InformationSchema(connection).collations(schema)) != self.task.range_key

    def _chunk_of_other_key(self, facts: ServerFacts, number: int) -> ReadChunk:
        """End the snapshot of a range in whose table keys have another order; the next plan takes a new snapshot of the table."""
        changed = TableReplaced(
            "its primary key was changed while it was read in ranges", hint="The table is read again automatically."
        )
        fault = Fault(facts.end, changed.code, changed.message, changed.hint)
        return self._last_chunk(facts, number, (QuarantinedTable(self.task.name, fault),))

    def _projection(self, schema: TableSchema, close: Callable[[], None]) -> Projection:
        """Return which columns to select; ``close`` is called before an error."""
        try:
            projection = self.shape.of(schema)
            refuse_masked_keys(projection)
        except ConfigError as error:
            close()
            fault = as_fault(error, quarantines=self.source.config.on_error == "quarantine")
            if fault is None:
                raise
            raise fault from error
        return projection

    def _upper(self, schema: TableSchema, index: str) -> tuple[str, ...] | None:
        """Return the current greatest key, so that the snapshot of a growing table ends; None to read the rest in one chunk."""
        if not can_be_chunked(schema):
            return None
        connection = self.source.connect()
        # Between two bounds a server may sort all keys to find the greatest.
        in_range = self.task.range
        sql = chunks.select_upper(schema, self.task.selection, in_range, index if in_range is not None else "")
        with query(self.source.config.server, connection, sql) as stream:
            result = ResultSet(whole(chunks.key_schema(schema)), stream, Masker(), ValuePolicy())
            for _ in result.groups():
                pass
        return chunks.key_text(schema, result.last_key) if result.last_key else None

    def _last_chunk(self, facts: ServerFacts, number: int, quarantined: tuple[QuarantinedTable, ...] = ()) -> ReadChunk:
        """Close a snapshot, or one range of it, with a chunk without rows."""
        empty = TableSchema(self.task.database, self.task.table, ())
        chunk = replace(self._empty_chunk(number, facts.end), last=True)
        manifest = replace(self._manifest(facts, chunk, empty, (), datetime.now(UTC)), quarantined=quarantined)
        return ReadChunk(chunk, lambda: self._published(number, manifest), ExitStack())

    def _empty_chunk(self, number: int, at: Position) -> SnapshotChunk:
        """Return a chunk without keys."""
        task = self.task
        return SnapshotChunk(
            task.snapshot_id, task.name, number, at, None, None, last=False,
            range_number=task.range_number or 0, range_count=len(task.ranges) or 1,
        )  # fmt: skip

    def _manifest(
        self,
        facts: ServerFacts,
        chunk: SnapshotChunk,
        schema: TableSchema,
        files: tuple[DataFile, ...],
        at: datetime,
    ) -> Manifest:
        return Manifest(
            source=self.task.source,
            epoch=self.task.epoch,
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

    def _published(self, number: int, manifest: Manifest) -> Manifest:
        return publish_manifest(self.source.store, layout.chunk_manifest_key(self.task, number), manifest)
