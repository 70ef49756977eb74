"""Data files of an Iceberg table, written in Arrow. Iceberg's own code plans which files to read, gives the locations and the metrics."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.apply.data_files import CODEC, LEVEL, codec_of, in_order, lake_fields, rows_at, write_rows
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.lineage import LINEAGE, SINCE, with_lineage
from cdc_lib.apply.old_rows import StoredRows
from cdc_lib.apply.partitions import partitions_of
from cdc_lib.model.lake_table import ORDER, LakeTable
from cdc_lib.model.layout import SortField
from spark_jobs.iceberg.deleted_rows import DeletedRows, OldFile, new_name
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import WHOLE, Replacement, each, has_few_manifests, in_this_thread
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.java_classes import java_classes
from spark_jobs.runtime.parallelism import is_local

MOST_RECORDS, MOST_RECORDS_HERE = 5_000_000, 20_000_000
"""Most rows whose keys this process reads: those of more are read by all executors, or by the cores of this machine."""

_MOST_COPIED = 16 << 20
"""Most bytes of files that are written again without some of their rows."""

_ENCRYPTED = "encryption.key-id"
_OVERRIDES = {CODEC: "spark.sql.iceberg.compression-codec", LEVEL: "spark.sql.iceberg.compression-level"}
"""Settings of a session that count more than the properties of a table."""


@dataclass(frozen=True, slots=True)
class DeletesOf:
    """Rows of a data file that a merge deletes.

    Args:
        file: the file.
        own: positions that the file's own deletes have, ascending.
        shared: those that deletes of several files have.
        settled: of rows on which changes decide, ascending: no rule does.
        positions: of live rows that are deleted, ascending.
    """

    file: OldFile
    own: Rows
    shared: Rows
    settled: Rows
    positions: Rows

    def joined(self, other: DeletesOf | None) -> DeletesOf:
        """Return these and others of the same file."""
        if other is None:
            return self
        settled, positions = np.union1d(self.settled, other.settled), np.union1d(self.positions, other.positions)
        return replace(self, settled=settled, positions=positions)


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Reads and writes files of one table as it was loaded.

    Args:
        table: Iceberg's Java object.
        storage: where its files are.
        metadata: of the table.
        properties: of the table, as this session overrides them.
        lake: the table as this project knows it.
        fields: of the table.
        most_records: rows that are read.
        deleted: of the table.
    """

    table: Any
    storage: FileStorage
    metadata: TableMetadata
    properties: Mapping[str, str]
    lake: LakeTable
    fields: tuple[pa.Field, ...]
    most_records: int
    deleted: DeletedRows

    @classmethod
    def of_table(cls, session: SparkSession, table: Any, metadata: TableMetadata, lake: LakeTable) -> RowFiles:
        """Return the files of a table, for the Java process of a session.

        Raises:
            NeedsSpark: the table is one that only Spark writes.
        """
        plain, properties = metadata.plain, metadata.properties
        if _ENCRYPTED in properties:
            raise NeedsSpark("the table is encrypted")
        overrides = {one: session.conf.get(name, None) for one, name in _OVERRIDES.items()}
        properties = {**properties, **{one: text for one, text in overrides.items() if text is not None}}
        version, codec = int(plain["format-version"]), codec_of(properties)
        most = MOST_RECORDS_HERE if is_local(session) else MOST_RECORDS
        fields, storage = lake_fields(metadata.schema["fields"]), FileStorage(table.io(), java_classes(session))
        deleted = DeletedRows(table, storage, version, codec)
        return cls(table, storage, metadata, properties, lake, fields, most, deleted)

    def planned(self, condition: Any) -> Iterator[OldFile]:
        """Yield the files of the table's snapshot that may have rows of a condition, which is Iceberg's Java object.

        Raises:
            NeedsSpark: they have very many rows, or their rows are deleted in another way than by deletion vectors.
        """
        if self.metadata.current is None:
            return
        scan, records = self.table.newScan().useSnapshot(self.metadata.current.id), 0
        if has_few_manifests(self.metadata.current.summary):
            scan = scan.planWith(in_this_thread(self.storage.classes))
        files = scan.filter(condition).planFiles()
        try:
            for task in each(files):
                file = self.deleted.planned(task)
                records += int(file.java.recordCount())
                if records > self.most_records:
                    raise NeedsSpark("the keys of very many rows have to be read")
                yield file
        finally:
            files.close()

    def expression(self, name: str, *parts: Any) -> Any:
        """Return one of Iceberg's expressions, by the name of the method that makes it."""
        return self.storage.classes.static("org.apache.iceberg.expressions.Expressions", name)(*parts)

    @contextmanager
    def stream(self, file: OldFile) -> Iterator[pa.NativeFile]:
        """Open a file; it is closed after the block."""
        with self.storage.opened(file.location, int(file.java.fileSizeInBytes())) as stream:
            yield stream

    def stored(self, file: OldFile, stream: pa.NativeFile) -> tuple[StoredRows, Rows, Rows]:
        """Return the rows of an open file, and the positions that its own deletes have and shared ones."""
        own, shared = self.deleted.read(file)
        return StoredRows(stream, self.fields, np.union1d(own, shared), int(file.java.recordCount())), own, shared

    def write(self, rows: pa.Table, done: Replacement, fields: Sequence[pa.Field] | None = None) -> None:
        """Write rows as data files, one of each partition.

        Args:
            rows: at least one.
            done: gets the files.
            fields: of the files; those of the table by default.
        """
        order = self.lake.layout.sort_by or [SortField(name) for name in self.lake.primary_key or ORDER]
        for partition, part in partitions_of(in_order(rows, order), self.metadata.schema["fields"], self.metadata.spec):
            location, file = self._written(part, self.fields if fields is None else fields, partition)
            done.data[location, WHOLE] = file

    def delete(self, deletes: Sequence[DeletesOf], done: Replacement) -> None:
        """Delete rows: as the table's layout says, they are marked, or the others of their files are written again.

        Args:
            deletes: the rows of each file, at least one.
            done: gets the files.

        Raises:
            NeedsSpark: large files would be written again.
        """
        marked, copied = list[tuple[OldFile, Rows]](), list[tuple[OldFile, Rows]]()
        for one in deletes:
            file, positions = one.file, np.union1d(one.own, one.positions)
            done.deleted += len(one.positions)
            done.removed_deletes |= {delete.key: delete.java for delete in file.deletes if delete.is_own}
            is_whole = len(positions) == int(file.java.recordCount())
            # Shared deletes of a file that is removed would count as deletes of other rows.
            if len(one.shared) or not (is_whole or self.lake.copies_on_write):
                marked.append((file, positions))
                continue
            done.removed_data[file.location, WHOLE] = file.java
            if not is_whole:
                copied.append((file, positions))
        self.deleted.write(marked, done)
        if copied:
            self._copy(copied, done)

    def _copy(self, files: Sequence[tuple[OldFile, Rows]], done: Replacement) -> None:
        """Write the rows of files again, without those at some positions.

        Args:
            files: each with positions of rows, ascending.
            done: gets the new files.

        Raises:
            NeedsSpark: they are large.
        """
        if sum(int(file.java.fileSizeInBytes()) for file, _ in files) > _MOST_COPIED:
            raise NeedsSpark("large files are written again")
        has_lineage, copies = self.deleted.format_version >= SINCE, list[pa.Table]()
        fields = (*self.fields, *(LINEAGE if has_lineage else ()))
        for file, without in files:
            java = file.java
            kept = np.setdiff1d(np.arange(int(java.recordCount())), without, assume_unique=True)
            with self.stream(file) as stream:
                rows = rows_at(stream, fields, kept)
            done.copied += len(kept)
            copies.append(
                with_lineage(rows, kept, java.firstRowId(), int(java.dataSequenceNumber())) if has_lineage else rows
            )
        self.write(pa.concat_tables(copies), done, fields)

    def _written(self, rows: pa.Table, fields: Sequence[pa.Field], partition: str) -> tuple[str, Any]:
        """Write a data file of a partition; returns its location and Iceberg's Java object."""
        data = io.BytesIO()
        write_rows(
            rows.select([one.name for one in fields]).cast(pa.schema(fields)),
            data,
            json.dumps(self.metadata.schema),
            self.properties,
        )
        spec, name = self.table.spec(), new_name(".parquet")
        parse = self.storage.classes.static("org.apache.iceberg.SingleValueParser", "fromJson")
        values = parse(spec.partitionType(), partition) if partition else None
        place = (name,) if values is None else (spec, values, name)
        location = str(self.table.locationProvider().newDataLocation(*place))
        written = data.getvalue()
        self.storage.write(location, written)
        config = self.storage.classes.static("org.apache.iceberg.MetricsConfig", "forTable")(self.table)
        metrics = parquet_metrics(written, config, self.storage.classes)
        builder = self.storage.classes.static("org.apache.iceberg.DataFiles", "builder")(spec)
        builder = builder.withPath(location).withFormat("parquet").withFileSizeInBytes(len(written))
        builder = builder.withMetrics(metrics).withSortOrder(self.table.sortOrder())
        builder = builder if values is None else builder.withPartition(values)
        return location, builder.build()
