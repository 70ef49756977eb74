"""The ports: Protocols of the external systems that the steps need.

Each has its implementations in one folder: object stores and cursor stores in ``cdc_lib/store/``, the binlog and rows of a server
in ``cdc_lib/mysql/``, lake tables in ``spark_jobs/iceberg/``. Object stores, cursor stores and lake tables have a contract suite
each in ``tests/contract/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, Protocol, TypeVar

import pyarrow as pa

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.comments import TableComments
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.foreign import Past
from cdc_lib.model.lake_table import LakeTable, Reselected
from cdc_lib.model.layout import DEFAULT_LAYOUT, Layout
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName

CaptureFilter = Callable[[str, str], bool]
"""Whether a table, by database and name, is captured."""


class Clock(Protocol):
    """Wall clock. Only for display and lag; it never decides an order."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object and the version tag that a conditional write compares with."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One line of a listing: key, size in bytes, time of the last write (UTC)."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The unfinished write of a crashed process.

    Args:
        key: key of the intended object, else of its folder.
        name: its name in the store.
        size: bytes; 0 if the store does not report it.
        modified: time of its last write (UTC).
    """

    key: str
    name: str
    size: int
    modified: datetime


class ObjectStore(Protocol):
    """Objects under keys such as ``shop/batches/...``; a key never starts with a slash.

    Every method raises StoreUnavailable if the store does not respond, after its own bounded retries.
    """

    def get(self, key: str) -> StoredObject | None:
        """Return a whole object, or None if it does not exist."""
        ...

    def put(self, key: str, data: bytes) -> str:
        """Write or overwrite an object; returns its etag."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object if the key is free; returns whether this call wrote it, also if the response was lost."""
        ...

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite the object if it still has this etag; returns the new etag, else None."""
        ...

    def open_write(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Stream a large object; it appears when the block ends without an error, else never."""
        ...

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch if it does not exist."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; a missing one is no error."""
        ...

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        """Return unfinished writes under the prefix that were last touched before a time."""
        ...

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Remove unfinished writes; a missing one is no error."""
        ...

    def url(self, key: str) -> str:
        """Return the URL by which Spark reads the object: ``file:///...``, ``s3a://...``, ``gs://...`` or ``abfss://...``."""
        ...


class CursorStore(Protocol):
    """Stores cursors. Under concurrent writers exactly one wins each generation."""

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor, or None before its first write."""
        ...

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Replace ``old`` with ``new`` and return it with its generation and writer set.

        Args:
            old: the cursor as it was loaded; None to create it.
            new: the new cursor; its generation and writer are set here.

        Raises:
            CursorMoved: the stored generation is no longer that of ``old``.
        """
        ...

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; no process that loaded it can swap it afterwards.

        Raises:
            CursorMoved: the stored generation is no longer that of ``cursor``.
        """
        ...

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source."""
        ...


class BinlogStream(Protocol):
    """The bytes of a binlog dump."""

    def read_into(self, view: memoryview) -> int:
        """Receive at least one byte into the view and return how many; 0 when the server closed the connection.

        Raises:
            SourceUnavailable: the connection broke or timed out.
        """
        ...


class RowGroupSink(Protocol):
    """Writes decoded row groups, one file per (table, layout)."""

    def write(self, key: str, schema: TableSchema, rows: pa.Table, renames: int = 0) -> None:
        """Write one row group; groups with the same key go into the same file, in order.

        ``renames``: how many statements renamed columns of the table in the window before these rows.
        """
        ...


class SchemaReader(Protocol):
    """Reads table definitions from the source."""

    def tables(self) -> Sequence[tuple[str, str]]:
        """Return (database, table) of every base table on the server, without system tables."""
        ...

    def schema(self, database: str, table: str) -> TableSchema | None:
        """Return the table's current columns, or None if the table does not exist."""
        ...

    def generated_from(self, database: str, table: str) -> Mapping[str, str]:
        """Return the expressions of the table's generated columns."""
        ...


Rows = TypeVar("Rows")


class RereadRows(Protocol):
    """Reads rows of a merge's keys from the source."""

    @property
    def reached(self) -> Sequence[tuple[TableName, Reselected]]:
        """Source tables and the points between which their rows were read."""
        ...

    def added_to(self, changes: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return changes with the current rows of all changed keys, if the merge lags.

        Raises:
            ReselectError: required rows cannot be read at the moment.
        """
        ...

    def instead_of(self, lacking: pa.Table, key: Sequence[str]) -> tuple[pa.Table, str]:
        """Return the current rows of incomplete changes, and why there are not all of them; else as :meth:`added_to`."""
        ...


class LakeRows(Protocol):
    """The rows of a lake table as it was loaded."""

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """All columns of the table."""
        ...

    def live(self, names: Sequence[str], within: str, least: int | None, most: int | None) -> Iterator[pa.Table]:
        """Yield columns of all rows but those in files that have no row of a range.

        Args:
            names: of the columns.
            within: the column of the range.
            least: no value is less; None for no lower bound.
            most: no value is greater; None for no upper bound.
        """
        ...


ReadRows = Callable[[LakeRows], Iterator[pa.Table]]
"""Reads changes in the columns of a lake table, with ``_op`` and ``_absent``, in any number of tables."""

FilesForTasks = Callable[[tuple[pa.Field, ...]], Sequence[Any]]
"""Returns files with changes, which tasks on other machines read: :class:`cdc_lib.apply.tasks.ChangesTask`."""


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """The changes of a lake table.

    Args:
        read: reads them. Missing cells come from earlier changes and existing rows.
        guard: whether the table may have rows newer than these changes; the newer ones are kept.
        to_come: whether a row that cannot be completed is left out, because a later snapshot chunk has it.
        reselect: reads rows from the source; None if none are read.
        spread: returns the files with all changes, if other machines share the work; none if not.
    """

    read: ReadRows
    guard: bool = True
    to_come: bool = False
    reselect: RereadRows | None = None
    spread: FilesForTasks | None = None


class MergeTarget(Protocol):
    """One lake table.

    Rows and markers are one atomic commit. It is based on the state that :meth:`load` first returned, or that this object
    committed last, and is never applied to another state. Changes of columns, mode and key may take several commits; after an
    error the same call does the rest.

    Every method raises MergeConflict if another writer committed meanwhile, StoreUnavailable if the catalog or the storage does
    not respond, and MergeError for other refusals of the lake.
    """

    def load(self) -> LakeTable | None:
        """Return the current state of the table, or None if it does not exist."""
        ...

    def lacks(self, error: CorruptBatch) -> bool:
        """Whether an error says that a file of this table is lost: of its metadata or its rows, not of a batch.

        Raises:
            MergeConflict: the table is another one by now: another merge has made it again.
        """
        ...

    def discard(self) -> None:
        """Remove the table from the catalog, so that it can be created again; its files stay where they are."""
        ...

    def past(self, snapshot_id: int, schema_id: int) -> Past:
        """Return the history of the table since a snapshot and a schema; the table must exist.

        Commits of other writers have no marker.
        """
        ...

    def create(
        self,
        schema: TableSchema,
        wanted: Mode | None = None,
        renames: Sequence[ColumnRename] = (),
        layout: Layout = DEFAULT_LAYOUT,
        source_types: str = "",
    ) -> LakeTable:
        """Create the empty table, in a mode if its rows have a key; its columns have the names after renames.

        The columns of the layout exist: :func:`cdc_lib.lake.layout.fitted`. For the types see :meth:`note_types`.

        Raises:
            IncompatibleSchema: a column has a reserved name.
            MergeConflict: another writer created it meanwhile.
        """
        ...

    def rename(self, state: LakeTable, names: Mapping[str, str], renames: Sequence[ColumnRename]) -> LakeTable:
        """Rename columns, all at once, and store the applied renames in the same commit.

        Args:
            state: the table's state at the decision: if its columns were renamed since, that is a conflict.
            names: columns and their new names.
            renames: all applied renames after that.
        """
        ...

    def drop(self, state: LakeTable, columns: Sequence[str]) -> LakeTable:
        """Drop columns as the source did, and record in the same commit that a merge dropped them.

        Args:
            state: the table's state at the decision: if its columns were renamed since, that is a conflict.
            columns: columns of the table that are not in its key.
        """
        ...

    def become(self, mode: Mode) -> LakeTable:
        """Continue in another mode; see :func:`cdc_lib.lake.modes.mode_change`."""
        ...

    def comment(self, wanted: Sequence[TableComments], *, shared: bool) -> bool:
        """Give the table and its columns the source's comments in one commit; see :mod:`cdc_lib.lake.comments`.

        A column that the table does not have yet gets its comment when it is added.

        Args:
            wanted: the comments, in the order in which they were read.
            shared: whether several source tables go into the lake table.

        Returns:
            Whether anything changed; a missing table stays missing.
        """
        ...

    def compute(self, computed: Mapping[str, str], types: Mapping[str, str]) -> LakeTable:
        """Add computed columns and record their expressions: rows that are written from now on have their values.

        Rows that the table has already are not changed.

        Args:
            computed: expressions by column.
            types: lake types by column.

        Raises:
            IncompatibleSchema: the table has a column of the name whose type cannot hold the values.
        """
        ...

    def lay_out(self, layout: Layout) -> LakeTable:
        """Give a table without rows another layout.

        Args:
            layout: with the names of the table's columns; the format version is not lowered.
        """
        ...

    def note_types(self, source_types: str) -> LakeTable:
        """Record the source's types of the newest rows; see :attr:`LakeTable.source_types`."""
        ...

    def rekey(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns as :meth:`evolve` does, and change the table's key to that of the schema."""
        ...

    def begin_again(
        self,
        schema: TableSchema,
        wanted: Mode | None = None,
        renames: Sequence[ColumnRename] = (),
        layout: Layout = DEFAULT_LAYOUT,
    ) -> LakeTable:
        """Return the table as if it were created with the schema; see :meth:`create`.

        Its definition becomes that one in the commit of the next rows, which removes all rows of before. The table keeps its
        history, so its earlier snapshots can be read, with their columns.

        Raises:
            IncompatibleSchema: a column has a reserved name.
        """
        ...

    def evolve(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns until rows of the schema fit; a column that the schema lacks is kept.

        Raises:
            IncompatibleSchema: rows cannot be stored without loss, or the schema has another key; no column is changed.
        """
        ...

    def apply(self, changes: MergeChanges, commit: TableCommit) -> int:
        """Apply changes as the table's mode says, and return how many there were, in modes with one row of a key that of the keys.

        Applying the same changes again gives the same rows, in modes with a key.

        Args:
            changes: the changes.
            commit: markers and updates of existing rows; the markers get the points between which rows were re-selected.

        Raises:
            MergeError: a row cannot be completed.
        """
        ...
