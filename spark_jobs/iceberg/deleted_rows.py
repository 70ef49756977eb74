"""Rows of data files that are marked as deleted: by deletion vectors in format 3, by files of positions in format 2."""

from __future__ import annotations

import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lib.apply.data_files import FIELD_ID, lake_fields
from cdc_lib.apply.deletion_vector import puffin_of
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.new_files import NewFile
from cdc_lib.apply.stored_files import POSITIONS, WHOLE, StoredDelete, StoredFile
from cdc_lib.apply.table_part import DeletesOf
from cdc_lib.errors import MergeError
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import Key, Replacement, each
from spark_jobs.iceberg.table_metadata import TableMetadata

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
        metadata: of the table.
    """

    table: Any
    storage: FileStorage
    format_version: int
    codec: str
    metadata: TableMetadata

    def planned(self, task: Any) -> OldFile:
        """Return the data file that a task of Iceberg reads.

        Raises:
            MergeError: it, or what deletes its rows, has a format that is not read.
        """
        java = task.file()
        _refuse_format(java)
        location, removers = str(java.location()), tuple(each(task.deletes()))
        deletes = tuple(self._of(one, location) for one in removers)
        stored = StoredFile(location, int(java.fileSizeInBytes()), int(java.recordCount()), deletes)
        return OldFile(stored, java, removers)

    def _of(self, java: Any, location: str) -> StoredDelete:
        offset, size, equals = WHOLE, int(java.fileSizeInBytes()), ()
        if str(java.format()) == "PUFFIN":
            offset, size = int(java.contentOffset()), int(java.contentSizeInBytes())
        else:
            _refuse_format(java)
        if str(java.content()) == "EQUALITY_DELETES":
            equals = self._fields([int(one) for one in each(java.equalityFieldIds())])
        is_own = str(java.referencedDataFile()) == location
        return StoredDelete(str(java.location()), offset, size, int(java.recordCount()), is_own, equals)

    def _fields(self, ids: Sequence[int]) -> tuple[pa.Field, ...]:
        """Return columns that the table has or had."""
        known = {one["id"]: one for schema in self.metadata.plain["schemas"] for one in schema["fields"]}
        known |= {one["id"]: one for one in self.metadata.schema["fields"]}
        if not known.keys() >= {*ids}:
            raise MergeError(
                "rows of the lake table are deleted by values of nested columns, which merges do not read",
                hint="Another program wrote such deletes. Write the table's files again without them (rewrite_data_files in Spark), and merge again.",
            )
        return lake_fields([known[one] | {"required": False} for one in ids])

    def write(self, rows: Sequence[DeletesOf], known: Mapping[str, OldFile], done: Replacement) -> None:
        """Mark rows as deleted, also those that the files' own deletes have, which the new ones replace.

        Args:
            rows: of each data file.
            known: the data files by location.
            done: gets the new files.
        """
        has_vectors, marked = self.format_version >= VECTORS, list[tuple[OldFile, Rows]]()
        for one in rows:
            # Where a vector is, files of positions do not count.
            replaced = np.union1d(one.dead.own, one.dead.shared) if has_vectors else one.dead.own
            positions = np.union1d(replaced, one.positions)
            marked.append((known[one.file.location], positions))
            done.uncounted += len(positions) - one.file.own_deletes - len(one.positions)
        if not has_vectors:
            for file, positions in marked:
                self._write_positions(file, positions, done)
        elif marked:
            self._write_vectors(marked, done)

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


def _refuse_format(java: Any) -> None:
    if (form := str(java.format())) != "PARQUET":
        raise MergeError(
            f"a file of the lake table has the format {form}, and merges read only Parquet",
            hint="Another program wrote it. cdc lake maintain writes such files again as Parquet; then merge again.",
            file=str(java.location()),
        )
