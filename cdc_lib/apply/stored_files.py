"""Data files of a lake table as a merge sees them: where each is, and what deletes rows of it. Known without Java, sent to tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.apply.data_files import FIELD_ID
from cdc_lib.apply.deletion_vector import parse_vector
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.old_rows import StoredRows

WHOLE = -1
"""Offset of a file that is not a part of another one."""

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
        """Open a file of so many bytes."""

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
        offset: of a deletion vector in it; :data:`WHOLE` for a file of positions.
        size: in bytes, of the vector or the file.
        rows: how many it deletes.
        is_own: whether it deletes rows of this data file alone.
    """

    location: str
    offset: int
    size: int
    rows: int
    is_own: bool

    def positions(self, store: FileStore, data_file: str) -> Rows:
        """Return the deleted rows of a data file, ascending."""
        if self.offset != WHOLE:
            return parse_vector(store.read_range(self.location, self.offset, self.size), self.rows).numbers()
        with store.opened(self.location, self.size) as stream:
            rows = pq.read_table(stream, columns=[PATH, POSITION], use_threads=False)
        found: Rows = rows.filter(pc.equal(rows.column(PATH), data_file)).column(POSITION).to_numpy()
        return found


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

    def deleted(self, store: FileStore) -> tuple[Rows, Rows]:
        """Return the positions of deleted rows, ascending: those that the file's own deletes have, and those of shared ones."""
        found: dict[bool, list[Rows]] = {True: [np.zeros(0, np.int64)], False: [np.zeros(0, np.int64)]}
        for delete in self.deletes:
            found[delete.is_own].append(delete.positions(store, self.location))
        return np.unique(np.concatenate(found[True])), np.unique(np.concatenate(found[False]))


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
        """Open a file; it is closed after the block."""
        with self.store.opened(file.location, file.size) as stream:
            yield stream

    def stored(self, file: StoredFile, stream: pa.NativeFile) -> tuple[StoredRows, Rows, Rows]:
        """Return the rows of an open file, and the positions that its own deletes have and shared ones."""
        own, shared = file.deleted(self.store)
        return StoredRows(stream, self.fields, np.union1d(own, shared), file.rows), own, shared
