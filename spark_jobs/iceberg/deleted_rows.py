"""Rows of data files that are marked as deleted: by deletion vectors in format 3, by files of positions in format 2."""

from __future__ import annotations

import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lib.apply.data_files import FIELD_ID
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.deletion_vector import puffin_of
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.new_files import NewFile
from cdc_lib.apply.stored_files import POSITIONS, WHOLE, StoredDelete, StoredFile
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import Key, Replacement, each

VECTORS = 3
"""The format version since which rows are deleted by vectors."""


@dataclass(frozen=True, slots=True)
class OldFile:
    """A data file of a table, and Iceberg's Java objects of it and of what deletes rows of it."""

    stored: StoredFile
    java: Any
    deletes: tuple[Any, ...]

    @property
    def own_deletes(self) -> dict[Key, Any]:
        """What deletes rows of this data file alone."""
        both = zip(self.stored.deletes, self.deletes, strict=True)
        return {(delete.location, delete.offset): java for delete, java in both if delete.is_own}


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Writes which rows of a table are deleted.

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
        location, removers = str(java.location()), tuple(each(task.deletes()))
        deletes = tuple(self._of(one, location) for one in removers)
        if self.format_version >= VECTORS and (len(deletes) > 1 or not all(one.is_own for one in deletes)):
            raise NeedsSpark("rows of the table are deleted in another way than by deletion vectors")
        stored = StoredFile(location, int(java.fileSizeInBytes()), int(java.recordCount()), deletes)
        return OldFile(stored, java, removers)

    def _of(self, java: Any, location: str) -> StoredDelete:
        form, is_vector = str(java.format()), self.format_version >= VECTORS
        if str(java.content()) != "POSITION_DELETES" or form != ("PUFFIN" if is_vector else "PARQUET"):
            raise NeedsSpark("rows of the table are deleted in another way than by its format version")
        offset, size = WHOLE, int(java.fileSizeInBytes())
        if is_vector:
            offset, size = int(java.contentOffset()), int(java.contentSizeInBytes())
        is_own = str(java.referencedDataFile()) == location
        return StoredDelete(str(java.location()), offset, size, int(java.recordCount()), is_own)

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
        data, blobs = puffin_of({file.stored.location: positions for file, positions in rows}, "lakecdc")
        puffin = str(self.table.locationProvider().newDataLocation(new_name(".puffin")))
        self.storage.write(puffin, data)
        for file, _ in rows:
            blob = blobs[file.stored.location]
            builder = self._builder(file, puffin, len(data), "puffin").withRecordCount(blob.rows)
            builder = builder.withContentOffset(blob.offset).withContentSizeInBytes(blob.size)
            done.deletes[puffin, blob.offset] = builder.build()

    def _write_positions(self, file: OldFile, positions: Rows, done: Replacement) -> None:
        data, paths = io.BytesIO(), pa.repeat(file.stored.location, len(positions))
        table = pa.Table.from_arrays([paths, pa.array(positions)], schema=POSITIONS)
        pq.write_table(table, data, compression=self.codec, store_schema=False)
        spec, name = self.table.specs().get(file.java.specId()), new_name("-deletes.parquet")
        place = (spec, file.java.partition(), name) if spec.isPartitioned() else (name,)
        location = str(self.table.locationProvider().newDataLocation(*place))
        self.storage.write(location, data.getvalue())
        config = self.storage.classes.static("org.apache.iceberg.MetricsConfig", "forPositionDelete")()
        metrics = parquet_metrics(NewFile.of(location, data.getvalue(), "").footer, config, self.storage.classes)
        ids = self.storage.classes.named("java.util.HashSet")()
        for field in POSITIONS:
            ids.add(int(field.metadata[FIELD_ID]))
        # As Iceberg's own writer: of its columns only the bounds.
        metrics = self.storage.classes.static("org.apache.iceberg.MetricsUtil", "copyWithoutFieldCounts")(metrics, ids)
        builder = self._builder(file, location, data.tell(), "parquet").withMetrics(metrics)
        done.deletes[location, WHOLE] = builder.build()

    def _builder(self, file: OldFile, location: str, size: int, form: str) -> Any:
        spec = self.table.specs().get(file.java.specId())
        builder = self.storage.classes.static("org.apache.iceberg.FileMetadata", "deleteFileBuilder")(spec)
        builder = builder.ofPositionDeletes().withFormat(form).withPath(location).withFileSizeInBytes(size)
        builder = builder.withReferencedDataFile(file.stored.location)
        return builder.withPartition(file.java.partition()) if spec.isPartitioned() else builder


def new_name(suffix: str) -> str:
    """Return a new file's name."""
    return f"00000-0-{secrets.token_hex(16)}{suffix}"
