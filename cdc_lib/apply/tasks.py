"""What tasks on executors do of a merge with many changes: split them by key, and apply each part. No Spark and no Java here.

All changes of a part are in one task, in the order in which they were drained. A task that is tried again writes files of other
names; what no commit names is removed as an orphan.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cdc_lib.apply.fills import Fill, filled
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.new_files import FileFormat, NewFile
from cdc_lib.apply.parts import PartCuts, sample_of, split
from cdc_lib.apply.rows import ChangeFile, LakeShape
from cdc_lib.apply.stored_files import StoredFile
from cdc_lib.apply.table_part import DeletesOf, KeyBounds, TablePart
from cdc_lib.config.credentials import StoreKeys
from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import CdcError
from cdc_lib.store.objects.open import open_store

T = TypeVar("T")

Piece = tuple[int, tuple[int, int, bytes]]
"""Number of a part; number of a change file, number of the piece in it, and rows as a stream of Arrow."""


@dataclass(frozen=True, slots=True)
class ChangesTask:
    """Reads a file of changes.

    Args:
        store: holds the batches.
        keys: of the store's account; None for those of the machine.
        file: the file.
        shape: the columns that rows get.
        fills: values of columns that were added since.
    """

    store: StoreConfig
    keys: StoreKeys | None
    file: ChangeFile
    shape: LakeShape
    fills: Sequence[Fill]

    def tables(self) -> Iterator[pa.Table]:
        """Yield the changes by row group."""
        for rows in self.file.tables(open_store(self.store, self.keys), self.shape):
            yield filled(rows, self.fills)


def sample_of_file(key: Sequence[str], changes: ChangesTask) -> Iterator[bytes]:
    """Yield the keys of some changes of a file, as a stream of Arrow."""
    yield _bytes_of(pa.concat_tables([sample_of(rows, key) for rows in changes.tables()]))


def answers(work: Callable[[Any], Iterable[T]], item: Any) -> list[T | CdcError]:
    """Return what work makes of an item, or its error, which Spark would pass on as text, and try again in vain."""
    try:
        return [*work(item)]
    except CdcError as error:
        if error.retryable:
            raise
        return [error]


def pieces_of(cuts: PartCuts, numbered: tuple[int, ChangesTask]) -> Iterator[Piece]:
    """Yield the changes of a file by part.

    Args:
        cuts: where parts begin.
        numbered: number of the file in the order of draining, and the file.
    """
    number, changes = numbered
    for at, rows in enumerate(changes.tables()):
        for part, piece in split(rows, cuts):
            yield part, (number, at, _bytes_of(piece))


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """Rows of a data file that changes touch, see :class:`cdc_lib.apply.table_part.DeletesOf`."""

    location: str
    settled: Rows
    positions: Rows

    @classmethod
    def of(cls, deletes: DeletesOf) -> TouchedFile:
        """Return what the driver does not know."""
        return cls(deletes.file.location, deletes.settled, deletes.positions)


Deleted = TypeVar("Deleted", DeletesOf, TouchedFile)


def joined(one: Deleted, other: Deleted | None) -> Deleted:
    """Return touched rows of a file, and others of the same file."""
    if other is None:
        return one
    positions = np.union1d(one.positions, other.positions)
    return replace(one, settled=np.union1d(one.settled, other.settled), positions=positions)


@dataclass(slots=True)
class TaskReport:
    """What a task did.

    Args:
        changes: their number, in modes with one row of a key the last one of each key.
        rows: number of new rows.
        files: new data files.
        touched: rows of the table's files.
    """

    changes: int = 0
    rows: int = 0
    files: list[NewFile] = field(default_factory=list)
    touched: list[TouchedFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RowsTask:
    """Applies changes to a table as it was loaded.

    Args:
        part: has the rules.
        format: of new data files.
        place: begins the locations of new data files.
        files: all of the table.
    """

    part: TablePart
    format: FileFormat
    place: str
    files: Sequence[StoredFile]

    def apply(self, pieces: Iterable[Piece]) -> Iterator[TaskReport]:
        """Apply one part.

        Args:
            pieces: its changes, in any order.
        """
        ordered = sorted((place for _, place in pieces), key=lambda place: place[:2])
        if ordered:
            yield self._report(pa.concat_tables([_table_of(data) for _, _, data in ordered]).combine_chunks())

    def append(self, changes: ChangesTask) -> Iterator[TaskReport]:
        """Append all changes of a file."""
        yield self._report(pa.concat_tables(changes.tables()))

    def _report(self, changes: pa.Table) -> TaskReport:
        result = self.part.result(changes, self._files_of)
        report = TaskReport(result.changes, touched=[TouchedFile.of(deletes) for deletes in result.touched])
        self._write(result.rows, report)
        return report

    def apply_rules(self, found: tuple[StoredFile, TouchedFile | None]) -> Iterator[TaskReport]:
        """Remove or fill the rows of a data file that changes do not touch.

        Args:
            found: the file, and its rows that changes touch.
        """
        file, touched = found
        report, left = TaskReport(), list[pa.Table]()
        of_file = self.part.with_others(file, touched, left.extend)
        if left:
            self._write(pa.concat_tables(left), report)
        if len(of_file.positions):
            report.touched.append(TouchedFile.of(of_file))
        yield report

    def _files_of(self, bounds: KeyBounds) -> Iterator[StoredFile]:
        if bounds.least is None or bounds.most is None:
            return iter(self.files)
        least, most = bounds.least, bounds.most
        return (file for file in self.files if file.may_hold(least, most))

    def _write(self, rows: pa.Table, report: TaskReport) -> None:
        fields = self.part.open.fields
        rows = rows.select([one.name for one in fields])
        report.rows += rows.num_rows
        if not rows.num_rows:
            return
        self.format.refuse(rows)
        for partition, data in self.format.files(rows, fields):
            location = f"{self.place}-{secrets.token_hex(8)}.parquet"
            self.part.open.store.write(location, data)
            report.files.append(NewFile.of(location, data, partition))


def _bytes_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def _table_of(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def table_of_samples(samples: Iterable[bytes]) -> pa.Table:
    """Return the keys of :func:`sample_of_file` of several files."""
    return pa.concat_tables([_table_of(data) for data in samples])


def lacking(modules: Sequence[str]) -> str:
    """Return what this process cannot import; empty if it imports all."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return str(error)
    return ""
