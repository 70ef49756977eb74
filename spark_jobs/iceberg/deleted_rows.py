"""Rows of data files that are marked as deleted: by deletion vectors in format 3, by files of positions in format 2."""

from __future__ import annotations

import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.apply.data_files import FIELD_ID
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.deletion_vector import parse_vector, puffin_of
from cdc_lib.apply.key_rows import Rows
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import WHOLE, Key, Replacement, each

VECTORS = 3
"""The format version since which rows are deleted by vectors."""

_PATH, _POSITION = "file_path", "pos"
_POSITIONS = pa.schema(
    [
        pa.field(_PATH, pa.string(), nullable=False, metadata={FIELD_ID: b"2147483546"}),
        pa.field(_POSITION, pa.int64(), nullable=False, metadata={FIELD_ID: b"2147483545"}),
    ]
)
"""Of a file of positions, by Iceberg's specification."""


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    """What deletes rows of a data file.

    Args:
        java: Iceberg's Java object.
        key: of it.
        is_own: whether it deletes rows of this data file alone.
    """

    java: Any
    key: Key
    is_own: bool


@dataclass(frozen=True, slots=True)
class OldFile:
    """A data file of a table, Iceberg's Java object of it, and what deletes rows of it."""

    java: Any
    location: str
    deletes: tuple[_DeleteFile, ...]


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Reads and writes which rows of a table are deleted.

    Args:
        table: Iceberg's Java object.
        storage: where its files are.
        format_version: of the table.
        codec: compression of files of positions.
    """

    table: Any
    storage: FileStorage
    format_version: int
    codec: str

    def planned(self, task: Any) -> OldFile:
        """Return the data file that a task of Iceberg reads.

        Raises:
            NeedsSpark: its rows are deleted in another way than this table's merges do it.
        """
        java = task.file()
        location = str(java.location())
        deletes = tuple(self._of(one, location) for one in each(task.deletes()))
        if self.format_version >= VECTORS and (len(deletes) > 1 or not all(one.is_own for one in deletes)):
            raise NeedsSpark("rows of the table are deleted in another way than by deletion vectors")
        return OldFile(java, location, deletes)

    def _of(self, java: Any, location: str) -> _DeleteFile:
        form, is_vector = str(java.format()), self.format_version >= VECTORS
        if str(java.content()) != "POSITION_DELETES" or form != ("PUFFIN" if is_vector else "PARQUET"):
            raise NeedsSpark("rows of the table are deleted in another way than by its format version")
        offset = int(java.contentOffset()) if is_vector else WHOLE
        return _DeleteFile(java, (str(java.location()), offset), str(java.referencedDataFile()) == location)

    def read(self, file: OldFile) -> tuple[Rows, Rows]:
        """Return the positions of a file's deleted rows, ascending: those that the file's own deletes have, and those of shared ones."""
        read = self._vector if self.format_version >= VECTORS else self._positions
        found: dict[bool, list[Rows]] = {True: [np.zeros(0, np.int64)], False: [np.zeros(0, np.int64)]}
        for one in file.deletes:
            found[one.is_own].append(read(one, file))
        return np.unique(np.concatenate(found[True])), np.unique(np.concatenate(found[False]))

    def _vector(self, delete: _DeleteFile, _: OldFile) -> Rows:
        (location, offset), size = delete.key, int(delete.java.contentSizeInBytes())
        blob = self.storage.read_range(location, offset, size)
        return parse_vector(blob, int(delete.java.recordCount())).numbers()

    def _positions(self, delete: _DeleteFile, file: OldFile) -> Rows:
        with self.storage.opened(delete.key[0], int(delete.java.fileSizeInBytes())) as stream:
            rows = pq.read_table(stream, columns=[_PATH, _POSITION], use_threads=False)
        positions: Rows = rows.filter(pc.equal(rows.column(_PATH), file.location)).column(_POSITION).to_numpy()
        return positions

    def write(self, rows: Sequence[tuple[OldFile, Rows]], done: Replacement) -> None:
        """Mark rows as deleted, also those that the files' own deletes have, which the new ones replace.

        Args:
            rows: data files, and positions of rows, ascending.
            done: gets the new files.
        """
        if self.format_version < VECTORS:
            for file, positions in rows:
                self._write_positions(file, positions, done)
        elif rows:
            self._write_vectors(rows, done)

    def _write_vectors(self, rows: Sequence[tuple[OldFile, Rows]], done: Replacement) -> None:
        data, blobs = puffin_of({file.location: positions for file, positions in rows}, "lakecdc")
        puffin = str(self.table.locationProvider().newDataLocation(new_name(".puffin")))
        self.storage.write(puffin, data)
        for file, _ in rows:
            blob = blobs[file.location]
            builder = self._builder(file, puffin, len(data), "puffin").withRecordCount(blob.rows)
            builder = builder.withContentOffset(blob.offset).withContentSizeInBytes(blob.size)
            done.deletes[puffin, blob.offset] = builder.build()

    def _write_positions(self, file: OldFile, positions: Rows, done: Replacement) -> None:
        data, paths = io.BytesIO(), pa.repeat(file.location, len(positions))
        table = pa.Table.from_arrays([paths, pa.array(positions)], schema=_POSITIONS)
        pq.write_table(table, data, compression=self.codec, store_schema=False)
        spec, name = self.table.specs().get(file.java.specId()), new_name("-deletes.parquet")
        place = (spec, file.java.partition(), name) if spec.isPartitioned() else (name,)
        location = str(self.table.locationProvider().newDataLocation(*place))
        self.storage.write(location, data.getvalue())
        config = self.storage.classes.static("org.apache.iceberg.MetricsConfig", "forPositionDelete")()
        metrics = parquet_metrics(data.getvalue(), config, self.storage.classes)
        ids = self.storage.classes.named("java.util.HashSet")()
        for field in _POSITIONS:
            ids.add(int(field.metadata[FIELD_ID]))
        # As Iceberg's own writer: of its columns only the bounds.
        metrics = self.storage.classes.static("org.apache.iceberg.MetricsUtil", "copyWithoutFieldCounts")(metrics, ids)
        builder = self._builder(file, location, data.tell(), "parquet").withMetrics(metrics)
        done.deletes[location, WHOLE] = builder.build()

    def _builder(self, file: OldFile, location: str, size: int, form: str) -> Any:
        spec = self.table.specs().get(file.java.specId())
        builder = self.storage.classes.static("org.apache.iceberg.FileMetadata", "deleteFileBuilder")(spec)
        builder = builder.ofPositionDeletes().withFormat(form).withPath(location).withFileSizeInBytes(size)
        builder = builder.withReferencedDataFile(file.location)
        return builder.withPartition(file.java.partition()) if spec.isPartitioned() else builder


def new_name(suffix: str) -> str:
    """Return a new file's name."""
    return f"00000-0-{secrets.token_hex(16)}{suffix}"
