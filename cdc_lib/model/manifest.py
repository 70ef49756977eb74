"""The manifest of a batch: the document that describes one drained window or snapshot chunk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.comments import TableComments
from cdc_lib.model.commit import Commit
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.gtid import WindowGtids
from cdc_lib.model.last_transaction import LastTransaction
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import QuarantinedTable
from cdc_lib.model.raw_event import RawArchive
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.model.xa import Decision, Prepared

Op = Literal["c", "u", "d", "r"]
"""Insert, update, delete, and row read by a snapshot; the value of the ``_op`` column."""

OP, EPOCH, BINLOG, OFFSET, ROW, TS, GTID = CHANGE_COLUMNS = (
    "_op",
    "_epoch",
    "_binlog",
    "_offset",
    "_row",
    "_ts",
    "_gtid",
)
"""Change columns: the first columns in every Parquet file of a batch.

``_op`` string (see :data:`Op`); ``_epoch`` int32, ``_binlog`` int32 (number of the binlog file; Iceberg reserves ``_file``),
``_offset`` int64 and ``_row`` int64 are the order key (rows of a compressed transaction share its offset; their ``_row`` continues through all of it); ``_ts`` timestamp in microseconds, UTC, of the commit (of the SELECT for snapshot rows); ``_gtid`` string or null.
"""

ABSENT = "_absent"
"""Column after the change columns in files of rows that may lack cells (see :attr:`DataFile.partial_rows`).

string: null for a complete row, else one character for each column of the table, in the order of the file's schema.
"""

CELL_HERE, CELL_ABSENT, CELL_UNKNOWN = "+", "-", "?"
"""Characters of ``_absent``: the cell is in the row (and may be NULL); the change did not touch it (an insert: it has its
default); the change set a value that the binlog does not contain. Cells of the latter two are null."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a batch.

    Args:
        path: key below the manifest's own folder, for example ``shop.orders/part-00000.parquet``.
        table: ``database.table`` at the source.
        schema_id: key into :attr:`Manifest.schemas`.
        rows: number of rows.
        bytes: size of the file.
        sha256: hex digest of the file.
        partial_rows: how many rows lack cells; if 0, ``_absent`` need not be read.
        renames: how many of the window's statements that rename columns of the table come before the rows.
        counts: the rows by their ``_op``; None where nobody counted.
    """

    path: str
    table: TableName
    schema_id: str
    rows: int
    bytes: int
    sha256: str
    partial_rows: int = 0
    renames: int = 0
    counts: RowCounts | None = None


@dataclass(frozen=True, slots=True)
class Ddl:
    """A DDL statement in the window that affects a captured table.

    Args:
        position: where its event starts.
        database: the statement's default database.
        statement: its text.
    """

    position: Position
    database: str
    statement: str


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """The snapshot chunk that a batch holds.

    Args:
        snapshot_id: id of the snapshot.
        table: ``database.table``.
        number: 0, 1, 2, ... in key order, in each range of a divided snapshot.
        low_watermark: position read before the SELECT; every change before it is in the rows.
        last_key: text form of the last key read; None when the chunk is empty or the table has no key.
        upper_key: text form of the greatest key when the snapshot began, of its range if it is divided; fixed in the first
            chunk; None without a key.
        last: whether this is the last chunk of the table, or of its range.
        high_watermark: position read after the SELECT; no change after it is in the rows. None if it was not stored.
        selection: the rows that the snapshot reads; None for the whole table.
        range_number: range of a divided snapshot, counted from 0.
        range_count: how many ranges the snapshot has.
    """

    snapshot_id: str
    table: TableName
    number: int
    low_watermark: Position
    last_key: tuple[str, ...] | None
    upper_key: tuple[str, ...] | None
    last: bool
    high_watermark: Position | None = None
    selection: RowSelection | None = None
    range_number: int = 0
    range_count: int = 1

    @property
    def folder(self) -> str:
        """Name of its folder among the chunks of the table: ``000007``, of a divided snapshot ``002-000007``."""
        return f"{self.number:06d}" if self.range_count == 1 else f"{self.range_number:03d}-{self.number:06d}"

    @property
    def read_to(self) -> Position:
        """High watermark, else low watermark: no change after it is in the rows."""
        return self.high_watermark or self.low_watermark


@dataclass(frozen=True, slots=True)
class Manifest:
    """The document that makes a batch exist; written last, put-if-absent, never changed.

    Exactly one of ``window`` and ``chunk`` is set.

    Args:
        source: name of the source.
        epoch: epoch of every order key in the batch.
        identity: server that the rows were read from.
        window: bounds, for a batch of the binlog.
        chunk: part of a snapshot, for a batch of SELECTed rows.
        gtid_first: GTID of the window's first transaction; empty when it has none.
        gtid_last: GTID of the window's last transaction; empty when it has none.
        first_time: earliest commit time of its events (UTC); None when the window is empty.
        last_time: latest commit time of its events (UTC); None when the window is empty.
        transactions: transactions in the window.
        events: events in the window, of every kind.
        files: the Parquet files.
        schemas: by schema id, every version that a file refers to, and each table's last version in the window.
        ddl: statements on captured tables, in order.
        prepared: XA transactions that are prepared in the window, in order.
        xa_decisions: XA transactions that are committed or rolled back in the window, in order.
        prepared_files: the rows of ``prepared``; they count only where a window commits them.
        quarantined: tables with a fault; their rows are left out.
        gtid_set: GTIDs of all of the window's transactions; empty when it has none.
        statements: effects of statements on the rows of captured tables, in order.
        raw: the window's raw events; None if they are not stored.
        last_commit: commit of the last transaction by the clock of the server that committed it first; None when it has none.
        last_transaction: the window's last one; None when it has none, or the server writes no GTID events.
        comments: comments of tables that statements of the window define, or that the snapshot reads; as they were when the batch was
            written, so a later statement may have made them.
        versions: keys of the schema versions that were stored with the window.
    """

    source: str
    epoch: int
    identity: ServerIdentity
    window: Window | None
    chunk: SnapshotChunk | None
    gtid_first: str
    gtid_last: str
    first_time: datetime | None
    last_time: datetime | None
    transactions: int
    events: int
    files: tuple[DataFile, ...]
    schemas: dict[str, TableSchema]
    ddl: tuple[Ddl, ...] = ()
    prepared: tuple[Prepared, ...] = ()
    xa_decisions: tuple[Decision, ...] = ()
    prepared_files: tuple[DataFile, ...] = ()
    quarantined: tuple[QuarantinedTable, ...] = ()
    gtid_set: str = ""
    statements: tuple[TableStatement, ...] = ()
    raw: RawArchive | None = None
    last_commit: Commit | None = None
    comments: tuple[TableComments, ...] = ()
    last_transaction: LastTransaction | None = None
    versions: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The batch's id: the window's, or ``snapshot-<id>-<table>-<chunk>``."""
        if self.window is not None:
            return self.window.id
        if self.chunk is None:
            msg = "a manifest has a window or a chunk"
            raise AssertionError(msg)
        return f"snapshot-{self.chunk.snapshot_id}-{self.chunk.table}-{self.chunk.folder}"

    @property
    def rows(self) -> int:
        """Rows in all files, without those of ``prepared_files``."""
        return sum(file.rows for file in self.files)

    @property
    def gtids(self) -> WindowGtids:
        """GTIDs of the window's transactions."""
        return WindowGtids(self.gtid_set, complete=bool(self.gtid_set and self.gtid_last))

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in (*self.files, *self.prepared_files))


def chunk_of(manifest: Manifest) -> SnapshotChunk:
    """Return the chunk that a snapshot's manifest describes."""
    if manifest.chunk is None:
        raise AssertionError(manifest.id)
    return manifest.chunk
