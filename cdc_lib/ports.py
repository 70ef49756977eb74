"""The seams: what the stages need from the world outside, as small Protocols.

Each has its implementations in one room: object stores and cursor stores in ``cdc_lib/store/``, the binlog and rows of a server
in ``cdc_lib/mysql/``, lake tables in ``spark_jobs/iceberg/``. Object stores, cursor stores and lake tables have a contract suite
each in ``tests/contract/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Generic, Protocol, TypeVar

import pyarrow as pa

from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.foreign import Past
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Reselected
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import Changes, Frame, TableCommit
from cdc_lib.model.table_mode import Mode

Wanted = Callable[[str, str], bool]
"""Whether a table, by database and name, is captured."""


class Clock(Protocol):
    """Wall clock. Only for people to read and for lag; no order is ever decided by it."""

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
    """What a writer that died left behind.

    Args:
        key: of the object that it was to become, as far as that is known; else of its folder.
        name: by which the store knows it.
        size: bytes; 0 where the store does not tell.
        modified: time of its last write (UTC).
    """

    key: str
    name: str
    size: int
    modified: datetime


class ObjectStore(Protocol):
    """Objects under keys such as ``shop/batches/...``; a key never starts with a slash.

    Every method raises StoreUnavailable when the store gives no answer, after its own bounded retries.
    """

    def get(self, key: str) -> StoredObject | None:
        """Return an object whole, or None when there is none."""
        ...

    def put(self, key: str, data: bytes) -> str:
        """Write an object, over an old one if there is one; returns its etag."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object unless one is there; returns whether this call (or a lost answer of it) wrote it."""
        ...

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Write over the object with this etag; returns the new etag, or None when it is no longer that one."""
        ...

    def open_write(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Stream a large object; it appears whole when the block ends well, and not at all when it raises."""
        ...

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch when there is none."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; one that is not there is no error."""
        ...

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        """Return what writers left behind that never became an object: begun under the prefix, and not touched since."""
        ...

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Remove such leftovers; one that is gone is no error."""
        ...

    def url(self, key: str) -> str:
        """Return the address by which Spark reads the object: ``file:///...`` or ``s3a://...``."""
        ...


class CursorStore(Protocol):
    """Where cursors live. All of them answer alike under concurrent writers: exactly one wins each generation."""

    def load(self, source: str, consumer: str) -> Cursor | None:
        """Return the cursor, or None before its first write."""
        ...

    def swap(self, old: Cursor | None, new: Cursor) -> Cursor:
        """Put ``new`` in the place of ``old`` and return it with its generation and writer set.

        Args:
            old: the cursor as it was loaded; None to create it.
            new: the next one; its generation and writer are set here.

        Raises:
            CursorMoved: the stored generation is no longer that of ``old``.
        """
        ...

    def remove(self, cursor: Cursor) -> None:
        """Remove a cursor as it was loaded; nobody who loaded it can swap it afterwards.

        Raises:
            CursorMoved: the stored generation is no longer that of ``cursor``.
        """
        ...

    def consumers(self, source: str) -> Sequence[str]:
        """Return the names of all consumers of a source."""
        ...


class BinlogStream(Protocol):
    """The bytes that a server sends after a dump was asked for."""

    def read_into(self, view: memoryview) -> int:
        """Receive at least one byte into the view and return how many; 0 when the server closed the connection.

        Raises:
            SourceUnavailable: the connection broke or nothing came for too long.
        """
        ...


class RowGroupSink(Protocol):
    """Takes decoded row groups, one file per (table, layout)."""

    def write(self, key: str, schema: TableSchema, rows: pa.Table, renames: int = 0) -> None:
        """Take one row group; groups with the same key go into the same file, in the order they come.

        ``renames``: how many statements renamed columns of the table in the window before these rows.
        """
        ...


class SchemaReader(Protocol):
    """Reads table definitions from the source."""

    def tables(self) -> Sequence[tuple[str, str]]:
        """Return (database, table) of every base table on the server, without the server's own."""
        ...

    def schema(self, database: str, table: str) -> TableSchema | None:
        """Return the table's current columns, or None when there is no such table."""
        ...


Rows = TypeVar("Rows")


@dataclass(frozen=True, slots=True)
class Replaced(Generic[Rows]):
    """The last change of each key after rows of the source took the place of some.

    Args:
        last: the changes.
        reached: by source table whose rows were re-selected, between which points they were read.
        why: why rows that are not whole could not be re-selected; empty where all were, or none had to be.
        columns: the lake table's, where rows that were read have more of them than it had; None where it has all.
    """

    last: Rows
    reached: Mapping[str, Reselected]
    why: str = ""
    columns: tuple[LakeColumn, ...] | None = None


class Reselect(Protocol[Rows]):
    """Reads rows back from the source."""

    def __call__(self, last: Rows, table: LakeTable) -> Replaced[Rows]:
        """Replace changes by the source's rows; see :class:`Replaced`.

        Args:
            last: the last change of each key; where some lacked cells, with :data:`cdc_lib.merge.collapse.MISSING`.
            table: the lake table.

        Raises:
            ReselectError: rows that are needed cannot be read for now.
        """
        ...

    def reads_whole(self) -> bool:
        """Whether rows may be read back although the log tells them whole."""
        ...


class MergeTarget(Protocol[Frame]):
    """One lake table.

    What brings rows is one commit or none: readers see all of it or nothing, and the markers come with the rows. It is decided on
    the table as :meth:`load` first returned it, or as the last rows that this object committed left it, and is never committed
    upon another one. Changes of columns, mode and key may be several commits; the same call after an error does what is left.

    Every method raises MergeConflict when somebody else committed meanwhile, StoreUnavailable when the catalog or the
    storage gives no answer, and MergeError for what else the lake refuses.
    """

    def load(self) -> LakeTable | None:
        """Return the table as it is now, or None when there is none."""
        ...

    def past(self, snapshot_id: int, schema_id: int) -> Past:
        """Return what happened to the table since it had a snapshot and a schema; it must be there.

        Commits of others are told from those of merges by the marker that they lack.
        """
        ...

    def create(
        self, schema: TableSchema, wanted: Mode | None = None, renames: Sequence[ColumnRename] = ()
    ) -> LakeTable:
        """Create the table without rows, in a mode if its rows have a key; its columns have the names after renames.

        Raises:
            IncompatibleSchema: a column has a name that the lake keeps for itself.
            MergeConflict: somebody else created it meanwhile.
        """
        ...

    def rename(self, state: LakeTable, names: Mapping[str, str], renames: Sequence[ColumnRename]) -> LakeTable:
        """Give columns new names, all at once, and remember the renames that they follow, in the same commit.

        Args:
            state: the table when that was decided: one whose columns were renamed since is a conflict.
            names: columns and their new names.
            renames: what the columns follow then.
        """
        ...

    def become(self, mode: Mode) -> LakeTable:
        """Continue in another mode; see :func:`cdc_lib.lake.modes.mode_change`."""
        ...

    def rekey(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns as :meth:`evolve` does, and keep rows by the key of the schema from now on."""
        ...

    def evolve(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns until rows of the schema fit; a column that the schema lacks stays.

        Raises:
            IncompatibleSchema: rows cannot be held without loss, or the schema has another key; no column is changed.
        """
        ...

    def upsert(self, changes: Changes[Frame], commit: TableCommit, reselect: Reselect[Frame] | None = None) -> int:
        """Apply the last change of each key, or all of them where versions are kept, and return how many there were.

        Applying the same changes again gives the same rows.

        Args:
            changes: what is applied.
            commit: what else is in the commit.
            reselect: reads rows back that are not whole, or all; how far they reach is put into the markers.

        Raises:
            MergeError: a row cannot be completed.
        """
        ...

    def append(self, changes: Frame, commit: TableCommit) -> int:
        """Add every change as a row, also one that the table has, and return how many there were.

        Args:
            changes: whole changes with the table's columns.
            commit: what else is in the commit.
        """
        ...
