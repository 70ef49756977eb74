"""Writes the Parquet files of a batch; a second thread encodes row groups while the next rows are decoded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.model.manifest import ABSENT, OP, DataFile
from cdc_lib.model.row_counts import NO_ROWS, RowCounts
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import ObjectStore
from cdc_lib.store.encoding import choose
from cdc_lib.store.hashed import HashedFile, LateFile

_GROUPS_IN_FLIGHT = 2
"""Maximum row groups that wait for the encoder; bounds the memory."""


@dataclass(slots=True)
class _OpenFile:
    """One file being written."""

    path: str
    schema: TableSchema
    late: LateFile
    file: HashedFile
    writer: pq.ParquetWriter
    stack: ExitStack
    renames: int
    rows: int = 0
    partial_rows: int = 0
    counts: RowCounts = NO_ROWS

    def abandon(self) -> None:
        """Close the writer without output: an open one would write its footer when it is garbage collected."""
        self.file.abandoned = True
        self.writer.close()


@dataclass(slots=True)
class BatchWriter:
    """Writes the Parquet files of one batch; they appear when the block ends without an error, else never.

    Args:
        store: the object store.
        key_of: object key of a file's path below the manifest.
        path_of: path of part number ``n`` of a table.
        level: zstd level.
        bounded: names of the columns whose least and greatest values are written, so that readers of one key skip row groups.
    """

    store: ObjectStore
    key_of: Callable[[str], str]
    path_of: Callable[[str, int], str]
    level: int = 1
    bounded: Sequence[str] = ()
    files: tuple[DataFile, ...] = ()
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    _parts: dict[str, _OpenFile] = field(default_factory=dict)
    _encoder: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "parquet"))
    _slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_GROUPS_IN_FLIGHT))
    _pending: list[Future[None]] = field(default_factory=list)

    def write(self, key: str, schema: TableSchema, rows: pa.Table, renames: int = 0) -> None:
        """Write one row group; groups with the same key go into the same file, in order.

        Args:
            key: decimal digits; the number in the file's name.
            schema: schema of the table.
            rows: change columns and the table's columns.
            renames: see :attr:`cdc_lib.model.manifest.DataFile.renames`.

        Raises:
            StoreError: an earlier group could not be written.
        """
        self._collect(wait=False)
        self._slots.acquire()
        self._pending.append(self._encoder.submit(self._encode, key, schema, rows, renames))

    def _encode(self, key: str, schema: TableSchema, rows: pa.Table, renames: int) -> None:
        try:
            part = self._parts.get(key) or self._open(key, schema, rows, renames)
            part.writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
            part.rows += rows.num_rows
            part.counts += _counted(rows)
            if ABSENT in rows.schema.names:
                part.partial_rows += rows.num_rows - rows.column(ABSENT).null_count
        finally:
            self._slots.release()

    def _open(self, key: str, schema: TableSchema, rows: pa.Table, renames: int) -> _OpenFile:
        # Not by the order in which files are opened: which layout fills a group first depends on how data arrives.
        path = self.path_of(schema.name, int(key))
        stack = ExitStack()
        late = LateFile(lambda: stack.enter_context(self.store.open_write(self.key_of(path))))
        file = HashedFile(late)
        encoding = choose(rows, self.level)
        writer = pq.ParquetWriter(
            file,
            rows.schema,
            compression=encoding.compression,
            compression_level=encoding.levels,
            use_dictionary=encoding.dictionary,
            column_encoding=encoding.others or None,
            write_statistics=list(self.bounded) or False,
            store_schema=False,
            # One page per column and row group: a merge reads these files completely.
            max_rows_per_page=1 << 20,
            write_batch_size=16384,
        )
        part = _OpenFile(path, schema, late, file, writer, stack, renames)
        self._parts[key] = part
        return part

    def _collect(self, *, wait: bool) -> None:
        while self._pending and (wait or self._pending[0].done()):
            self._pending.pop(0).result()

    def __enter__(self) -> Self:
        """Write while the block runs."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete all files, or none."""
        try:
            if error is not None:
                self._give_up(error)
                return
            try:
                self._collect(wait=True)
                self.files = tuple(self._finish(self._parts[key]) for key in sorted(self._parts))
            except BaseException as fault:
                self._give_up(fault)
                raise
        finally:
            self._encoder.shutdown(wait=True, cancel_futures=True)

    def _give_up(self, error: BaseException) -> None:
        """Abort all files, also if aborting one of them fails."""
        self._encoder.shutdown(wait=True, cancel_futures=True)
        files = ExitStack()
        for part in self._parts.values():
            files.push(part.stack)
            files.callback(part.abandon)
        files.__exit__(type(error), error, error.__traceback__)

    def _finish(self, part: _OpenFile) -> DataFile:
        part.writer.close()
        part.late.open()
        part.stack.close()
        self.schemas[part.schema.id] = part.schema
        digest = part.file.sha256.hexdigest()
        facts = (part.path, part.schema.name, part.schema.id, part.rows, part.file.size, digest, part.partial_rows)
        return DataFile(*facts, part.renames, part.counts)


def _counted(rows: pa.Table) -> RowCounts:
    found = {one["values"]: one["counts"] for one in pc.value_counts(rows.column(OP)).to_pylist()}
    return RowCounts(found.get("c", 0), found.get("u", 0), found.get("d", 0), found.get("r", 0))
