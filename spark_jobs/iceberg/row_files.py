"""Data files of an Iceberg table, written in Arrow. Iceberg's own code plans which files to read, gives the locations and the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.apply.data_files import CODEC, FIELD_ID, LEVEL, codec_of, lake_fields, named, rows_at
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.lineage import LINEAGE, SINCE, with_lineage
from cdc_lib.apply.new_files import FileFormat, NewFile
from cdc_lib.apply.stored_files import WHOLE, OpenFiles, StoredFile
from cdc_lib.apply.table_part import DeletesOf, KeyBounds
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.table_mode import IS_CURRENT, VALID_TO
from spark_jobs.iceberg.deleted_rows import DeletedRows, OldFile, new_name
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import Replacement, each, has_few_manifests, in_this_thread
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
class RowFiles:
    """Reads and writes files of one table as it was loaded.

    Args:
        table: Iceberg's Java object.
        storage: where its files are.
        metadata: of the table.
        format: of new files.
        open: opens files.
        most_records: rows that are read.
        deleted: of the table.
        known: planned files, by location.
    """

    table: Any
    storage: FileStorage
    metadata: TableMetadata
    format: FileFormat
    open: OpenFiles
    most_records: int
    deleted: DeletedRows
    known: dict[str, OldFile] = field(default_factory=dict)

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
        written = FileFormat(lake, metadata.schema, metadata.spec, properties)
        return cls(table, storage, metadata, written, OpenFiles(storage, fields), most, deleted)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the table."""
        return self.open.fields

    def planned(self, bounds: KeyBounds, *, with_bounds: bool = False) -> Iterator[StoredFile]:
        """Yield the files of the table's snapshot that may have rows within bounds.

        Args:
            bounds: of the rows.
            with_bounds: whether the files show the bounds of the first key column.

        Raises:
            NeedsSpark: they have very many rows, or their rows are deleted in another way than by deletion vectors.
        """
        if self.metadata.current is None:
            return
        scan, records = self.table.newScan().useSnapshot(self.metadata.current.id), 0
        if has_few_manifests(self.metadata.current.summary):
            scan = scan.planWith(in_this_thread(self.storage.classes))
        scan = scan.includeColumnStats() if with_bounds else scan
        files = scan.filter(self._condition(bounds)).planFiles()
        try:
            for task in each(files):
                file = self.deleted.planned(task)
                records += file.stored.rows
                if records > self.most_records:
                    raise NeedsSpark("the keys of very many rows have to be read")
                self.known[file.stored.location] = file
                yield self._bounded(file) if with_bounds else file.stored
        finally:
            files.close()

    def _bounded(self, file: OldFile) -> StoredFile:
        """Return a file with the bounds of the first key column, if it is an integer."""
        first = named(self.fields, self.format.lake.primary_key[:1])
        if not first or not pa.types.is_integer(first[0].type):
            return file.stored
        number = int(first[0].metadata[FIELD_ID])
        ends = (
            java.get(number) if java is not None else None
            for java in (file.java.lowerBounds(), file.java.upperBounds())
        )
        # Iceberg keeps the bytes of numbers from the lowest on.
        least, most = (None if end is None else int.from_bytes(end.array(), "little", signed=True) for end in ends)
        return replace(file.stored, least=least, most=most)

    def _condition(self, bounds: KeyBounds) -> Any:
        """Return Iceberg's condition of rows within bounds."""
        condition = self._expression("alwaysTrue")
        if bounds.least is not None and bounds.most is not None:
            name = self.format.lake.primary_key[0]
            least = self._expression("greaterThanOrEqual", name, bounds.least)
            condition = self._expression("and", least, self._expression("lessThanOrEqual", name, bounds.most))
        if bounds.since is not None:
            since = self._expression("greaterThanOrEqual", VALID_TO, bounds.since.isoformat())
            usable = self._expression("or", self._expression("equal", IS_CURRENT, True), since)
            condition = self._expression("and", condition, usable)
        return condition

    def _expression(self, name: str, *parts: Any) -> Any:
        """Return one of Iceberg's expressions, by the name of the method that makes it."""
        return self.storage.classes.static("org.apache.iceberg.expressions.Expressions", name)(*parts)

    def write(self, rows: pa.Table, done: Replacement, fields: Sequence[pa.Field] | None = None) -> None:
        """Write rows as data files, one of each partition.

        Args:
            rows: at least one.
            done: gets the files.
            fields: of the files; those of the table by default.
        """
        for partition, data in self.format.files(rows, self.fields if fields is None else fields):
            spec, name = self.table.spec(), new_name(".parquet")
            place = (spec, self._values(partition), name) if partition else (name,)
            location = str(self.table.locationProvider().newDataLocation(*place))
            self.storage.write(location, data)
            self.add(NewFile.of(location, data, partition), done)

    def add(self, file: NewFile, done: Replacement) -> None:
        """Let a merge add a data file that was written.

        Args:
            file: the file.
            done: gets it.
        """
        config = self.storage.classes.static("org.apache.iceberg.MetricsConfig", "forTable")(self.table)
        metrics = parquet_metrics(file.footer, config, self.storage.classes)
        builder = self.storage.classes.static("org.apache.iceberg.DataFiles", "builder")(self.table.spec())
        builder = builder.withPath(file.location).withFormat("parquet").withFileSizeInBytes(file.size)
        builder = builder.withMetrics(metrics).withSortOrder(self.table.sortOrder())
        builder = builder.withPartition(self._values(file.partition)) if file.partition else builder
        done.data[file.location, WHOLE] = builder.build()

    def _values(self, partition: str) -> Any:
        parse = self.storage.classes.static("org.apache.iceberg.SingleValueParser", "fromJson")
        return parse(self.table.spec().partitionType(), partition)

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
            file, positions = self.known[one.file.location], np.union1d(one.own, one.positions)
            done.deleted += len(one.positions)
            done.removed_deletes |= file.own_deletes
            is_whole = len(positions) == one.file.rows
            # Shared deletes of a file that is removed would count as deletes of other rows.
            if len(one.shared) or not (is_whole or self.format.lake.copies_on_write):
                marked.append((file, positions))
                continue
            done.removed_data[one.file.location, WHOLE] = file.java
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
        if sum(file.stored.size for file, _ in files) > _MOST_COPIED:
            raise NeedsSpark("large files are written again")
        has_lineage, copies = self.deleted.format_version >= SINCE, list[pa.Table]()
        fields = (*self.fields, *(LINEAGE if has_lineage else ()))
        for file, without in files:
            java = file.java
            kept = np.setdiff1d(np.arange(file.stored.rows), without, assume_unique=True)
            with self.open.stream(file.stored) as stream:
                rows = rows_at(stream, fields, kept)
            done.copied += len(kept)
            copies.append(
                with_lineage(rows, kept, java.firstRowId(), int(java.dataSequenceNumber())) if has_lineage else rows
            )
        self.write(pa.concat_tables(copies), done, fields)
