"""One unit of work from the server to a durable batch: source, decode and store wired together."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.decode.masking import Masker, Shape
from cdc_lib.decode.resultset import ResultSet
from cdc_lib.decode.selected import with_order
from cdc_lib.errors import (
    BatchMismatch,
    ConfigError,
    ServerSwitched,
    UnknownSchema,
    UnsupportedValue,
)
from cdc_lib.histories import Histories
from cdc_lib.model.aside import SetAside
from cdc_lib.model.batch import DataFile, Manifest, SnapshotChunk
from cdc_lib.model.identity import ServerIdentity
from cdc_lib.model.part import Part
from cdc_lib.model.policy import ValuePolicy
from cdc_lib.model.position import Position
from cdc_lib.model.projection import Projection, whole
from cdc_lib.model.results import DrainResult
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.origins import ServerOrigin
from cdc_lib.ports import ObjectStore
from cdc_lib.shaping import shape_of
from cdc_lib.source.connect import Session, connect
from cdc_lib.source.facts import ServerFacts, read_charsets, read_facts, read_head
from cdc_lib.source.schema import InformationSchema
from cdc_lib.source.stream import query
from cdc_lib.source.watermark import low_watermark
from cdc_lib.store import documents, layout
from cdc_lib.store.layered import LayeredStore
from cdc_lib.window import chunks
from cdc_lib.window_batches import Leaving, WindowBatches, at_fault, batch_writer


@dataclass(frozen=True, slots=True)
class Drainer:
    """Drains the units of one source.

    Args:
        config: of the source.
        credentials: log-in of the source.
        store: where batches go.
        versions: where versions of schemas are read from that the store does not have; None where it has all.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    versions: ObjectStore | None = None

    @property
    def shape(self) -> Shape:
        """Which columns are stored, and behind which masks."""
        return shape_of(self.config, self.credentials)

    @property
    def _batches(self) -> WindowBatches:
        origin = ServerOrigin(self.config, self.credentials, self.shape)
        return WindowBatches(self.config, self.store, self.shape, origin)

    def window(
        self,
        window: Window,
        identity: ServerIdentity,
        earlier: Sequence[Window] = (),
        leaving: Leaving | None = None,
        file_times: Mapping[str, datetime] | None = None,
    ) -> DrainResult:
        """Read one window and write its batch, unless it is there already.

        Args:
            window: what to read.
            identity: server that the window's positions belong to.
            earlier: windows in flight before it; what those without a batch hold of DDL is read as well if need be.
            leaving: tables that the window does without, or may.
            file_times: when binlog files were made, of those that are known.

        Raises:
            ServerSwitched: another server answers.
            PositionNotFound: a file was made at another time: the server's binlog was reset meanwhile.
            BatchMismatch: somebody else wrote the same window with other contents.
        """
        began = time.monotonic()
        key = layout.manifest_key(window)
        if (manifest := self.manifest(key)) is not None:
            return _result(window.id, [manifest], began, written=0)
        connection = connect(self.config.server, self.credentials)
        try:
            facts = self._facts(connection, identity)
            charsets = read_charsets(connection)
        finally:
            connection.close()
        versions = LayeredStore(self.store, self.versions) if self.versions is not None else self.store
        histories = Histories(self.config, self.credentials, versions, window.epoch, facts, charsets)
        undrained = [before for before in earlier if self.manifest(layout.manifest_key(before)) is None]
        manifest = self._batches.write(window, histories, undrained, leaving or Leaving(), file_times or {})
        stands = self._publish(key, manifest)
        if _contents(stands) != _contents(manifest):
            raise BatchMismatch(
                "the window was drained before with other contents",
                hint="Its files may be written over: rewind the cursor to the window's start and drain it again.",
                source=window.source,
                key=key,
            )
        return _result(window.id, [manifest], began, written=1)

    def snapshot(self, task: SnapshotTask, identity: ServerIdentity) -> DrainResult:
        """Read the chunks of one table that are not there yet, each into a batch of its own.

        Raises:
            ServerSwitched: another server answers.
        """
        began = time.monotonic()
        found = self.chunks(task)
        written = 0
        while not found or not _chunk(found[-1]).last:
            try:
                chunk = self._next_chunk(task, identity, found[-1] if found else None, len(found))
            except UnsupportedValue as error:
                chunk = self._last_chunk_at_fault(task, identity, error, len(found))
            found.append(chunk)
            written += 1
        return _result(task.id, found, began, written=written)

    def chunks(self, task: SnapshotTask) -> list[Manifest]:
        """Return the manifests of a table's chunks, in order, up to the first that is missing."""
        found: list[Manifest] = []
        while (manifest := self.manifest(layout.chunk_manifest_key(task, len(found)))) is not None:
            found.append(manifest)
        return found

    def manifest(self, key: str) -> Manifest | None:
        """Return a manifest, or None when the batch does not exist."""
        stored = self.store.get(key)
        return None if stored is None else documents.load(Manifest, stored.data, key)

    def _next_chunk(
        self, task: SnapshotTask, identity: ServerIdentity, before: Manifest | None, number: int
    ) -> Manifest:
        key = layout.chunk_manifest_key(task, number)
        connection = connect(self.config.server, self.credentials)
        # Asked anew for each chunk: another server may answer from one to the next.
        facts = self._facts(connection, identity)
        schema = InformationSchema(connection).schema(task.database, task.table)
        if schema is None:
            connection.close()
            return self._gone(task, facts, number, key)
        projection = self._projection(self.config.values.applied(schema), connection.close)
        rows = self.config.snapshot.chunk_rows
        index = InformationSchema(connection).key_name(schema)
        watermark = low_watermark(connection, facts)
        after = _chunk(before).last_key if before else None
        # Behind the watermark: a greater key that comes later has its change behind it as well.
        upper = _chunk(before).upper_key if before else self._upper(schema, task.part)
        now = datetime.now(UTC)
        sql = chunks.select_chunk(projection.source, after, upper, rows, index, task.part)
        # Whoever loses the race for the manifest must not have touched the winner's files: hence a name of its own.
        token = secrets.token_hex(4)
        path = layout.chunk_part_path(0).replace(".parquet", f"-{token}.parquet")
        with (
            query(self.config.server, connection, sql) as stream,
            batch_writer(self.config, self.store, key, lambda *_: path) as writer,
        ):
            result = ResultSet(projection, stream, self.shape.masker, self.config.values)
            for table in result.groups():
                writer.write("0", projection.schema, with_order(table, task.epoch, watermark, now))
        high = self._high_watermark(identity)
        last_key = chunks.key_text(schema, result.last_key) if upper is not None and result.last_key else None
        chunk = SnapshotChunk(
            task.snapshot_id, task.name, number, watermark, after, last_key, upper,
            last=upper is None or result.rows < rows or last_key == upper, high_watermark=high, part=task.part,
        )  # fmt: skip
        return self._publish(key, _chunk_manifest(task, facts, chunk, projection.schema, writer.files, now))

    def _high_watermark(self, identity: ServerIdentity) -> Position:
        """Return the end of the binlog behind a SELECT, whose connection is gone: what it showed was in there before."""
        connection = connect(self.config.server, self.credentials)
        try:
            return read_head(connection, self._facts(connection, identity))
        finally:
            connection.close()

    def _last_chunk_at_fault(
        self, task: SnapshotTask, identity: ServerIdentity, error: UnsupportedValue, number: int
    ) -> Manifest:
        """End a snapshot whose rows are not understood, where the table is set aside for that.

        Raises:
            UnsupportedValue: the error, where it stops the source.
        """
        connection = connect(self.config.server, self.credentials)
        try:
            facts = self._facts(connection, identity)
        finally:
            connection.close()
        found = at_fault(self.config, error, facts.head) if facts.head is not None else {}
        if task.name not in found or facts.head is None:
            raise error
        empty = TableSchema(task.database, task.table, ())
        chunk = SnapshotChunk(task.snapshot_id, task.name, number, facts.head, None, None, None, last=True)
        manifest = _chunk_manifest(task, facts, chunk, empty, (), datetime.now(UTC))
        manifest = replace(manifest, aside=(SetAside(task.name, found[task.name]),))
        return self._publish(layout.chunk_manifest_key(task, number), manifest)

    def _projection(self, schema: TableSchema, close: Callable[[], None]) -> Projection:
        """Return which columns to select; ``close`` is called when there is no saying."""
        try:
            projection = self.shape.of(schema)
            chunks.refuse_masked_keys(projection)
        except ConfigError:
            close()
            raise
        return projection

    def _upper(self, schema: TableSchema, part: Part | None) -> tuple[str, ...] | None:
        """Return the greatest key now, so that a table that grows is not chased; None for one chunk of everything."""
        if not chunks.can_be_chunked(schema):
            return None
        connection = connect(self.config.server, self.credentials)
        with query(self.config.server, connection, chunks.select_upper(schema, part)) as stream:
            policy = ValuePolicy(invalid_text="replace")
            result = ResultSet(whole(chunks.key_schema(schema)), stream, Masker(), policy)
            for _ in result.groups():
                pass
        return chunks.key_text(schema, result.last_key) if result.last_key else None

    def _gone(self, task: SnapshotTask, facts: ServerFacts, number: int, key: str) -> Manifest:
        """Close the snapshot of a table that was dropped meanwhile: its DROP stands in the binlog."""
        if facts.head is None:
            raise UnknownSchema("the table to be read does not exist", table=task.name)
        empty = TableSchema(task.database, task.table, ())
        chunk = SnapshotChunk(task.snapshot_id, task.name, number, facts.head, None, None, None, last=True)
        return self._publish(key, _chunk_manifest(task, facts, chunk, empty, (), datetime.now(UTC)))

    def _facts(self, connection: Session, identity: ServerIdentity) -> ServerFacts:
        facts = read_facts(connection, self.config.server)
        if not facts.identity.is_same_server(identity):
            raise ServerSwitched(
                f"the work was planned for {identity}, but {facts.identity} answers",
                hint="Point the source file at the former server, or start a new source with a snapshot.",
                source=self.config.source,
            )
        return facts

    def _publish(self, key: str, manifest: Manifest) -> Manifest:
        """Write a manifest; return the one that stands, which may be somebody else's."""
        if self.store.put_if_absent(key, documents.dump(manifest)):
            return manifest
        stands = self.manifest(key)
        if stands is None:
            raise BatchMismatch("a manifest was there and is gone", hint="Drain the unit again.", key=key)
        return stands


def _contents(manifest: Manifest) -> tuple[object, ...]:
    """Return what two drains of one window must agree on."""
    aside = tuple((one.table, one.events) for one in manifest.aside)
    raw = manifest.raw and manifest.raw.sha256
    return manifest.files, manifest.prepared_files, manifest.prepared, manifest.decided, manifest.statements, aside, raw


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


def _result(unit_id: str, manifests: list[Manifest], began: float, *, written: int) -> DrainResult:
    return DrainResult(
        unit_id=unit_id,
        batches=written,
        rows=sum(manifest.rows for manifest in manifests),
        bytes=sum(manifest.bytes for manifest in manifests),
        events=sum(manifest.events for manifest in manifests),
        seconds=time.monotonic() - began,
        aside=tuple(one for manifest in manifests for one in manifest.aside),
    )
