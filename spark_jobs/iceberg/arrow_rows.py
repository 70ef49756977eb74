"""Replaces few rows of an Iceberg table by their keys, without Spark SQL: files and deletion vectors are written in Arrow.

Iceberg's own code plans which files may have the keys, gives the locations and the metrics, and commits.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from cdc_lib.apply.data_files import (
    CODEC,
    LEVEL,
    codec_of,
    in_order,
    joined_positions,
    lake_fields,
    positions_of,
    rows_at,
    write_rows,
)
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.deletion_vector import parse_vector, puffin_of
from cdc_lib.apply.key_rows import AskedKeys, Rows
from cdc_lib.apply.rows import Order, less, order_of, with_column
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import OP
from cdc_lib.model.table_mode import IS_DELETED
from spark_jobs.iceberg.branches import wrong_rows
from spark_jobs.iceberg.file_streams import InputStream, read_range, write_file
from spark_jobs.iceberg.key_check import COUNTED_KEYS
from spark_jobs.iceberg.row_delta import WHOLE, Key, Replacement, each
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.java_classes import JavaClasses, java_classes

MOST_RECORDS, MOST_RECORDS_HERE = 1_000_000, 20_000_000
"""Most rows whose keys this process reads: those of more are read by all executors, or by the cores of this machine."""

_FORMAT_VERSION = 3
_ENCRYPTED = "encryption.key-id"
_OVERRIDES = {CODEC: "spark.sql.iceberg.compression-codec", LEVEL: "spark.sql.iceberg.compression-level"}
"""Settings of a session that count more than the properties of a table."""

_LOCAL = "file:"
"""Files of this machine are read without Java: bytes of Java's streams are copied three times."""

_SMALL_FILE = 1 << 20
"""Most bytes of a data file that is read as a whole: to ask for its parts takes longer."""


@dataclass(frozen=True, slots=True)
class _Vector:
    """A deletion vector, and Iceberg's Java object of it."""

    java: Any
    key: Key

    @classmethod
    def of(cls, java: Any) -> _Vector:
        if str(java.format()) != "PUFFIN":
            raise NeedsSpark("rows of the table are deleted in another way than by deletion vectors")
        return cls(java, (str(java.location()), int(java.contentOffset())))


@dataclass(frozen=True, slots=True)
class _OldFile:
    """A data file of the table, Iceberg's Java object of it, and the rows of it that are deleted."""

    java: Any
    location: str
    vector: _Vector | None


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Writes rows of one table as it was loaded.

    Args:
        table: Iceberg's Java object.
        io: its storage, Iceberg's FileIO.
        metadata: of the table.
        properties: of the table, as this session overrides them.
        key: names of the key's columns.
        fields: of the table.
        classes: cache of Iceberg's classes.
        of: the source table, for messages.
        most_records: rows whose keys are read.
    """

    table: Any
    io: Any
    metadata: TableMetadata
    properties: Mapping[str, str]
    key: tuple[str, ...]
    fields: tuple[pa.Field, ...]
    classes: JavaClasses
    of: str
    most_records: int

    @classmethod
    def of_table(
        cls, session: SparkSession, table: Any, metadata: TableMetadata, key: Sequence[str], of: str
    ) -> ArrowRows:
        """Return the writer of a table, for the Java process of a session.

        Raises:
            NeedsSpark: the table is one that only Spark writes.
        """
        plain, properties = metadata.plain, metadata.properties
        if int(plain["format-version"]) != _FORMAT_VERSION or _ENCRYPTED in properties:
            raise NeedsSpark("the table is of format version 2, or encrypted")
        if any(spec["fields"] for spec in plain["partition-specs"]):
            raise NeedsSpark("the table is, or was, partitioned")
        overrides = {one: session.conf.get(name, None) for one, name in _OVERRIDES.items()}
        properties = {**properties, **{one: text for one, text in overrides.items() if text is not None}}
        codec_of(properties)
        most = MOST_RECORDS_HERE if (session.sparkContext.master or "").startswith("local") else MOST_RECORDS
        fields, classes = lake_fields(metadata.schema["fields"]), java_classes(session)
        rows = cls(table, table.io(), metadata, properties, tuple(key), fields, classes, of, most)
        if any(pa.types.is_floating(one.type) for one in rows.key_fields):
            raise NeedsSpark("a column of the key is inexact")
        return rows

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The fields of the key's columns."""
        return self._named(self.key)

    def _named(self, names: Sequence[str]) -> tuple[pa.Field, ...]:
        by_name = {one.name: one for one in self.fields}
        return tuple(by_name[name] for name in names)

    def append(self, rows: pa.Table) -> Replacement:
        """Write all rows; nothing is committed."""
        return self._with_rows(Replacement(), rows, ORDER)

    def replace(self, last: pa.Table, *, guard: bool, keeps_deleted: bool) -> Replacement:
        """Write the last change of each key; nothing is committed.

        Args:
            last: the changes.
            guard: whether the table may have newer rows, which stay.
            keeps_deleted: whether a deleted row stays, with its mark.

        Raises:
            NeedsSpark: a file of the table is one that only Spark reads, or a row has no key.
            MergeError: not all rows of the keys were found.
        """
        keys = last.select(self.key).combine_chunks()
        if any(one.null_count for one in keys.columns):
            raise NeedsSpark("a row has no key")
        done, outdated = Replacement(), np.zeros(last.num_rows, np.bool_)
        if last.num_rows and self.metadata.current is not None:
            files = [*self._files(keys)]
            outdated = self._delete(files, keys, order_of(last) if guard else None, done)
            # How many rows had to be found is certain if they are those of all keys, or of all that were not inserted.
            inserts, found = pc.sum(pc.equal(last.column(OP), INSERT)).as_py(), done.deleted + int(outdated.sum())
            if found not in (last.num_rows, last.num_rows - inserts) and last.num_rows <= COUNTED_KEYS:
                self._count(files, keys, found)
        deleted = pc.equal(last.column(OP), DELETE)
        rows = with_column(last, IS_DELETED, deleted) if keeps_deleted else last
        left = ~outdated if keeps_deleted else ~outdated & ~deleted.to_numpy()
        return self._with_rows(done, rows.filter(pa.array(left)), self.key)

    def _with_rows(self, done: Replacement, rows: pa.Table, key: Sequence[str]) -> Replacement:
        if rows.num_rows:
            done.rows = rows.num_rows
            location, file = self._written(in_order(rows, key))
            done.data[location, WHOLE] = file
        return done

    def _delete(
        self, files: Sequence[_OldFile], keys: pa.Table, order: Order | None, done: Replacement
    ) -> NDArray[np.bool_]:
        """Delete the rows of the keys, without those that are newer than a given order; returns of which keys there are such rows."""
        asked, vectors = AskedKeys([one.combine_chunks() for one in keys.columns]), dict[str, Rows]()
        outdated = np.zeros(keys.num_rows, np.bool_)
        for file in files:
            with self._opened(file) as stream:
                positions, numbers = positions_of(stream, self.key_fields, asked)
                if not len(positions):
                    continue
                before = self._deleted(file)
                is_live = ~np.isin(positions, before, assume_unique=True)
                positions, numbers = positions[is_live], numbers[is_live]
                if order is not None:
                    theirs = order_of(rows_at(stream, self._named(ORDER), positions))
                    is_newer = less(tuple(part[numbers] for part in order), theirs, or_equal=False)
                    outdated[numbers[is_newer]] = True
                    positions = positions[~is_newer]
            if not len(positions):
                continue
            done.deleted += len(positions)
            if file.vector is not None:
                done.removed_deletes[file.vector.key] = file.vector.java
            if len(positions) + len(before) == int(file.java.recordCount()):
                done.removed_data[file.location, WHOLE] = file.java
            else:
                vectors[file.location] = np.union1d(before, positions)
        if vectors:
            self._write_vectors(vectors, done)
        return outdated

    def _count(self, files: Sequence[_OldFile], keys: pa.Table, known: int) -> None:
        """Count the rows of the keys in another way.

        Raises:
            MergeError: they are others than those that were found.
        """
        found = 0
        for file in files:
            with self._opened(file) as stream:
                found += len(np.setdiff1d(joined_positions(stream, self.key_fields, keys), self._deleted(file)))
        if found != known:
            raise wrong_rows(self.of, f"{known} rows of {keys.num_rows} changed keys are found, and there are {found}")

    def _files(self, keys: pa.Table) -> Iterator[_OldFile]:
        """Yield the files of the table's snapshot that may have one of the keys.

        Raises:
            NeedsSpark: they have very many rows, or their rows are deleted in another way than by deletion vectors.
        """
        scan, records = self.table.newScan().useSnapshot(self.metadata.current.id), 0  # type: ignore[union-attr]
        planned = scan.filter(self._bounds(keys)).planFiles()
        try:
            for task in each(planned):
                file, deletes = task.file(), [*each(task.deletes())]
                records += int(file.recordCount())
                if records > self.most_records:
                    raise NeedsSpark("the keys of very many rows have to be read")
                location = str(file.location())
                if len(deletes) > 1 or any(str(one.referencedDataFile()) != location for one in deletes):
                    raise NeedsSpark("rows of the table are deleted in another way than by deletion vectors")
                vectors = [_Vector.of(one) for one in deletes]
                yield _OldFile(file, location, vectors[0] if vectors else None)
        finally:
            planned.close()

    def _bounds(self, keys: pa.Table) -> Any:
        """Return the condition that a file of the keys fulfils: Iceberg compares the bounds of the first column."""
        expressions, first = partial(self.classes.static, "org.apache.iceberg.expressions.Expressions"), keys.column(0)
        # A point in a name would be read as a path.
        if "." in self.key[0] or not pa.types.is_integer(first.type):
            return expressions("alwaysTrue")()
        least, most = (pc.min_max(first)[end].as_py() for end in ("min", "max"))
        within = (("greaterThanOrEqual", least), ("lessThanOrEqual", most))
        return expressions("and")(*(expressions(name)(self.key[0], value) for name, value in within))

    def _opened(self, file: _OldFile) -> pa.NativeFile:
        if file.location.startswith(_LOCAL):
            return pa.OSFile(file.location.removeprefix(_LOCAL))
        size = int(file.java.fileSizeInBytes())
        found = self.io.newInputFile(file.location, size)
        if size <= _SMALL_FILE:
            return pa.BufferReader(read_range(found, 0, size))
        return pa.PythonFile(InputStream(found, size), "r")

    def _deleted(self, file: _OldFile) -> Rows:
        """Return the positions of a file's rows that are deleted already."""
        if file.vector is None:
            return np.zeros(0, np.int64)
        (location, offset), vector = file.vector.key, file.vector.java
        size = int(vector.contentSizeInBytes())
        if location.startswith(_LOCAL):
            with pa.OSFile(location.removeprefix(_LOCAL)) as puffin:
                blob = puffin.read_at(size, offset)
        else:
            blob = read_range(self.io.newInputFile(location), offset, size)
        return parse_vector(blob, int(vector.recordCount())).numbers()

    def _written(self, rows: pa.Table) -> tuple[str, Any]:
        """Write a data file; returns its location and Iceberg's Java object."""
        data = io.BytesIO()
        write_rows(
            rows.select([one.name for one in self.fields]).cast(pa.schema(self.fields)),
            data,
            json.dumps(self.metadata.schema),
            self.properties,
        )
        location = self._new_location("parquet")
        write_file(self.io.newOutputFile(location), data.getvalue())
        file = self.io.newInputFile(location, data.tell())
        config = self.classes.static("org.apache.iceberg.MetricsConfig", "forTable")(self.table)
        metrics = self.classes.static("org.apache.iceberg.parquet.ParquetUtil", "fileMetrics")(file, config)
        builder = self.classes.static("org.apache.iceberg.DataFiles", "builder")(self.table.spec())
        builder = builder.withInputFile(file).withMetrics(metrics).withSortOrder(self.table.sortOrder())
        return location, builder.build()

    def _write_vectors(self, vectors: Mapping[str, Rows], done: Replacement) -> None:
        data, blobs = puffin_of(vectors, "lakecdc")
        puffin = self._new_location("puffin")
        write_file(self.io.newOutputFile(puffin), data)
        spec, form = self.table.spec(), self.classes.static("org.apache.iceberg.FileFormat", "fromString")("puffin")
        new_builder = self.classes.static("org.apache.iceberg.FileMetadata", "deleteFileBuilder")
        for location, blob in blobs.items():
            builder = new_builder(spec).ofPositionDeletes().withFormat(form).withPath(puffin)
            builder = builder.withFileSizeInBytes(len(data)).withReferencedDataFile(location)
            builder = builder.withContentOffset(blob.offset).withContentSizeInBytes(blob.size)
            done.deletes[puffin, blob.offset] = builder.withRecordCount(blob.rows).build()

    def _new_location(self, kind: str) -> str:
        return str(self.table.locationProvider().newDataLocation(f"00000-0-{secrets.token_hex(16)}.{kind}"))
