"""Data files of a lake table as a merge sees them: where each is, and what deletes rows of it. Known without Java, sent to tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.data_files import FIELD_ID, DamagedFile, columns_of
from cdc_lib.apply.deletion_vector import parse_vector
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.old_rows import StoredRows
from cdc_lib.apply.rows import numbers_of
from cdc_lib.errors import CorruptBatch

WHOLE = -1
"""Offset of a file that is not a part of another one."""

NO_ROWS = np.zeros(0, np.int64)

LOST = (
    "cdc batches refill {source} writes lost files of batches again. A file of the table: restore it from the store's "
    "versions, or let a new snapshot make the table again: cdc snapshot {source} {tables}"
)
"""What to do about a file that cannot be read."""

PATH, POSITION = "file_path", "pos"
POSITIONS = pa.schema(
    [
        pa.field(PATH, pa.string(), nullable=False, metadata={FIELD_ID: b"2147483546"}),
        pa.field(POSITION, pa.int64(), nullable=False, metadata={FIELD_ID: b"2147483545"}),
    ]
)
"""Of a file of positions, by Iceberg's specification."""


class FileStore(Protocol):
    """Where the files of a lake table are."""

    def opened(self, location: str, size: int) -> pa.NativeFile:
        """Open a file of so many bytes.

        Raises:
            FileNotFoundError: it does not exist.
        """

    def read_range(self, location: str, offset: int, size: int) -> bytes:
        """Return a part of a file."""

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file, which must not exist."""

    def at_once(self, locations: Iterable[str]) -> int:
        """Return how many files are best read at the same time."""


@dataclass(frozen=True, slots=True)
class StoredDelete:
    """What deletes rows of a data file.

    Args:
        location: of the file.
        offset: of a deletion vector in it; :data:`WHOLE` for a file of positions or values.
        size: in bytes, of the vector or the file.
        rows: how many it deletes.
        is_own: whether it deletes rows of this data file alone.
        equals: columns by whose values it deletes rows, as another writer does; empty if by positions.
    """

    location: str
    offset: int
    size: int
    rows: int
    is_own: bool
    equals: tuple[pa.Field, ...] = ()

    def positions(self, store: FileStore, data_file: str, stream: pa.NativeFile | None) -> Rows:
        """Return the deleted rows of a data file, in any order.

        Args:
            store: holds the file.
            data_file: location of the data file.
            stream: reads the data file; needed for deletes by values.

        Raises:
            CorruptBatch: the file is lost or damaged.
        """
        with _named_if_damaged(self.location), _existing():
            if self.offset != WHOLE:
                return _vector(store.read_range(self.location, self.offset, self.size), self.rows)
            with store.opened(self.location, self.size) as file:
                deleted = columns_of(file, self.equals or list(POSITIONS))
        if not self.equals:
            found: Rows = deleted.filter(pc.equal(deleted.column(PATH), data_file)).column(POSITION).to_numpy()
            return found
        # Null is a value here.
        rows = columns_of(stream, self.equals, may_lack=True)
        numbers = numbers_of(pa.concat_tables([deleted, rows]), deleted.column_names)
        return np.flatnonzero(np.isin(numbers[deleted.num_rows :], numbers[: deleted.num_rows]))


def _vector(blob: bytes, rows: int) -> Rows:
    try:
        return parse_vector(blob, rows).numbers()
    except ValueError as error:
        raise DamagedFile(str(error)) from error


@contextmanager
def _existing() -> Iterator[None]:
    """Translate the error of a file that does not exist."""
    try:
        yield
    except FileNotFoundError as error:
        raise DamagedFile(str(error)) from error


@contextmanager
def _named_if_damaged(location: str) -> Iterator[None]:
    """Name a file that is read in the block, if it is damaged.

    Raises:
        CorruptBatch: it is lost or damaged.
    """
    try:
        yield
    except DamagedFile as error:
        raise CorruptBatch(
            f"could not merge: a file of the lake table cannot be read: {error}", hint=LOST, file=location
        ) from error


@dataclass(frozen=True, slots=True)
class DeadRows:
    """Positions of a data file's deleted rows, ascending.

    Args:
        own: those that the file's own deletes have.
        shared: those that deletes of several files have.
        equal: those that deletes by values have.
    """

    own: Rows
    shared: Rows
    equal: Rows

    def joined(self, others: Rows = NO_ROWS) -> Rows:
        """Return the positions of all, and others."""
        return np.unique(np.concatenate([self.own, self.shared, self.equal, others]))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file of a table.

    Args:
        location: of the file.
        size: in bytes.
        rows: how many it has, with deleted ones.
        deletes: what deletes rows of it.
        least: smallest value of the first key column, if it is known, and an integer; None if not.
        most: greatest one, likewise.
    """

    location: str
    size: int
    rows: int
    deletes: tuple[StoredDelete, ...]
    least: int | None = None
    most: int | None = None

    def may_hold(self, least: int, most: int) -> bool:
        """Whether a value of the first key column may lie between two others, or be one of them."""
        return (self.most is None or self.most >= least) and (self.least is None or self.least <= most)

    def dead(self, store: FileStore, stream: pa.NativeFile | None) -> DeadRows:
        """Return its deleted rows.

        Args:
            store: holds what deletes them.
            stream: reads it; needed for deletes by values.

        Raises:
            CorruptBatch: a file is lost or damaged.
        """
        own, shared, equal = [NO_ROWS], [NO_ROWS], [NO_ROWS]
        for delete in self.deletes:
            of_kind = equal if delete.equals else own if delete.is_own else shared
            of_kind.append(delete.positions(store, self.location, stream))
        return DeadRows(*(np.unique(np.concatenate(found)) for found in (own, shared, equal)))

    @property
    def own_deletes(self) -> int:
        """How many rows its own deletes have; a row of two of them counts twice, as Iceberg counts it."""
        return sum(delete.rows for delete in self.deletes if delete.is_own)


@dataclass(frozen=True, slots=True)
class OpenFiles:
    """Opens data files of a table.

    Args:
        store: where they are.
        fields: columns of the table.
    """

    store: FileStore
    fields: tuple[pa.Field, ...]

    @contextmanager
    def stream(self, file: StoredFile) -> Iterator[pa.NativeFile]:
        """Open a file; it is closed after the block.

        Raises:
            CorruptBatch: it is lost or damaged.
        """
        with _named_if_damaged(file.location):
            with _existing():
                opened = self.store.opened(file.location, file.size)
            with opened as stream:
                yield stream

    def stored(self, file: StoredFile, stream: pa.NativeFile) -> tuple[StoredRows, DeadRows]:
        """Return the rows of an open file, and those that are deleted already."""
        dead = file.dead(self.store, stream)
        return StoredRows(stream, self.fields, dead.joined(), file.rows), dead

    def dead(self, file: StoredFile) -> DeadRows:
        """Return the deleted rows of a file."""
        if not any(delete.equals for delete in file.deletes):
            return file.dead(self.store, None)
        with self.stream(file) as stream:
            return file.dead(self.store, stream)
