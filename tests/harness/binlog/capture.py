"""One captured database for tests of the drain: its pipeline, its positions, and the rows of its batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.drain.window import Drainer
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.results import DrainResult
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.server_facts import ServerFacts, read_facts
from cdc_lib.pipeline import Pipeline
from cdc_lib.snapshot.reader import SnapshotReader
from cdc_lib.store import layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.manifests import chunks_of, find_manifest
from cdc_lib.store.objects.local import LocalStore
from tests.harness.servers import SqlServer

SOURCE = "shop"


@contextmanager
def row_metadata(server: SqlServer, value: str) -> Iterator[None]:
    """Set ``binlog_row_metadata`` while the block runs; skips values that the flavor does not have."""
    if value == "NO_LOG" and server.flavor == "mysql":
        pytest.skip("only MariaDB can leave everything out")
    server.execute(f"SET GLOBAL binlog_row_metadata = '{value}'")
    try:
        yield
    finally:
        server.execute("SET GLOBAL binlog_row_metadata = 'FULL'")


class Capture:
    """A source over one database of a real server, with a store in a folder.

    Args:
        server: a running one.
        database: whose tables are captured.
        folder: for the store.
        **settings: sections of the source file; they replace the defaults.
    """

    def __init__(self, server: SqlServer, database: str, folder: Path, **settings: Any) -> None:
        self.server = server
        self.database = database
        self.store = LocalStore(folder / "store")
        self.config = SourceConfig(
            source=SOURCE,
            server={"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": "UNUSED"},
            store={"url": f"file://{folder}/store"},
            **{
                "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/cat.db", "warehouse": f"file://{folder}/lake"},
                "tables": {"include": [f"{database}.*"]},
                **settings,
            },
        )
        self.credentials = Credentials(server.cdc_user, server.cdc_password)
        self.pipeline = Pipeline(self.config, self.credentials, self.store, ObjectCursorStore(self.store))
        self.drainer = Drainer(self.pipeline)

    @property
    def reader(self) -> SnapshotReader:
        """The snapshot reader of the pipeline."""
        return SnapshotReader(self.drainer.source)

    def manifest(self, key: str) -> Manifest | None:
        """Return a manifest of the store."""
        return find_manifest(self.store, key)

    def chunks(self, task: SnapshotTask) -> list[Manifest]:
        """Return the manifests of a snapshot's chunks."""
        return chunks_of(self.store, task)

    def execute(self, sql: str, arguments: Any = None) -> list[Any]:
        """Run one statement in the captured database."""
        return self.server.execute(sql, arguments, database=self.database)

    def facts(self) -> ServerFacts:
        """Read the server's facts now."""
        connection = connect(self.config.server, self.credentials)
        try:
            return read_facts(connection, self.config.server)
        finally:
            connection.close()

    def head(self) -> Position:
        """Return the end of the binlog."""
        head = self.facts().binlog_end
        assert head is not None
        return head

    def window_from(self, start: Position) -> Window:
        """Return the window up to the end of the binlog."""
        return Window(SOURCE, 1, start, self.head())

    def drain(self, window: Window) -> Manifest:
        """Drain a window and return its manifest."""
        self.drainer.window(window, self.facts().identity)
        manifest = self.manifest(layout.manifest_key(window))
        assert manifest is not None
        return manifest

    def snapshot(self, table: str) -> list[Manifest]:
        """Read a table by SELECT and return the manifests of its chunks."""
        task = self.task(table)
        self.reader.read(task, self.facts().identity)
        return self.chunks(task)

    def task(self, table: str) -> SnapshotTask:
        """Return a snapshot task of one table."""
        return SnapshotTask(SOURCE, 1, "000001-test", self.database, table)

    def run_snapshot(self, table: str) -> DrainResult:
        """Read the chunks of a table's snapshot that are missing."""
        return self.reader.read(self.task(table), self.facts().identity)

    def tables(self, manifest: Manifest, table: str) -> list[pa.Table]:
        """Return the files of a table, one Arrow table each."""
        return self._read(manifest, manifest.files, table)

    def prepared_rows(self, manifest: Manifest, table: str) -> list[dict[str, Any]]:
        """Return a table's rows of prepared XA transactions, in their order."""
        rows = [row for one in self._read(manifest, manifest.prepared_files, table) for row in one.to_pylist()]
        return sorted(rows, key=lambda row: (row["_epoch"], row["_binlog"], row["_offset"], row["_row"]))

    def _read(self, manifest: Manifest, files: Iterable[DataFile], table: str) -> list[pa.Table]:
        key = layout.key_of(manifest)
        tables = []
        for file in files:
            if file.table == f"{self.database}.{table}":
                with self.store.open_read(layout.beside(key, file.path)) as data:
                    tables.append(pq.read_table(data))
        return tables

    def rows(self, manifest: Manifest, table: str) -> list[dict[str, Any]]:
        """Return a table's changes in their order."""
        rows = [row for one in self.tables(manifest, table) for row in one.to_pylist()]
        return sorted(rows, key=lambda row: (row["_epoch"], row["_binlog"], row["_offset"], row["_row"]))

    def ops(self, manifest: Manifest, table: str, column: str = "id") -> list[tuple[str, Any]]:
        """Return (op, value of a column) of each change in order."""
        return [(row["_op"], row[column]) for row in self.rows(manifest, table)]

    def visible(self) -> list[str]:
        """Return the keys of everything in the store."""
        return [info.key for info in self.store.list("")]


def first_chunk(reader: SnapshotReader, task: SnapshotTask, identity: ServerIdentity) -> Manifest:
    """Read only the first chunk of a snapshot, as a drain does that is killed after it."""
    reader.read(task, identity, datetime.now(UTC))
    return chunks_of(reader.source.store, task)[0]
