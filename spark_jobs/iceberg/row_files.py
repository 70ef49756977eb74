"""Data files of an Iceberg table, written in Arrow. Iceberg's own code plans which files to read, gives the locations and the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.apply.data_files import CODEC, FIELD_ID, LEVEL, codec_of, groups_at, lake_fields, named
from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.lineage import LINEAGE, SINCE, with_lineage
from cdc_lib.apply.new_files import FileFormat, NewFile
from cdc_lib.apply.stored_files import WHOLE, OpenFiles, StoredFile
from cdc_lib.apply.table_part import DeletesOf, KeyBounds, bounds_of
from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.table_mode import IS_CURRENT, VALID_TO
from spark_jobs.iceberg.deleted_rows import DeletedRows, OldFile, new_name
from spark_jobs.iceberg.file_streams import FileStorage, parquet_metrics
from spark_jobs.iceberg.row_delta import Replacement, each, has_few_manifests, in_this_thread
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.java_classes import java_classes

_COPIED_AT_ONCE = 2
"""Files that are written again at the same time."""

_COPY_BYTES = 16 << 20
"""Bytes of rows in memory that are written again together: as many row groups of a file, or as many small files."""

_ENCRYPTED, _MAPPING = "encryption.key-id", "schema.name-mapping.default"
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
        deleted: of the table.
        known: planned files, by location.
    """

    table: Any
    storage: FileStorage
    metadata: TableMetadata
    format: FileFormat
    open: OpenFiles
    deleted: DeletedRows
    known: dict[str, OldFile] = field(default_factory=dict)

    @classmethod
    def of_table(cls, session: SparkSession, table: Any, metadata: TableMetadata, lake: LakeTable) -> RowFiles:
        """Return the files of a table, for the Java process of a session.

        Raises:
            MergeError: the table has files that are not written here.
        """
        properties = metadata.properties
        if _ENCRYPTED in properties:
            raise MergeError(
                "the lake table is encrypted, and merges write only plain files",
                hint=f"Unset {_ENCRYPTED}, or drop the lake table and make it again: cdc lake drop {{source}} {{table}}, then cdc snapshot {{source}} {{table}}",
            )
        overrides = {one: session.conf.get(name, None) for one, name in _OVERRIDES.items()}
        properties = {**properties, **{one: text for one, text in overrides.items() if text is not None}}
        fields = lake_fields(metadata.schema["fields"], properties.get(_MAPPING))
        storage, version = FileStorage(table.io(), java_classes(session)), int(metadata.plain["format-version"])
        deleted = DeletedRows(table, storage, version, codec_of(properties), metadata)
        name = str(table.name())
        written = FileFormat(lake, metadata.schema, metadata.spec, metadata.sort_order, properties, name)
        return cls(table, storage, metadata, written, OpenFiles(storage, fields), deleted)

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
            MergeError: a file has a format that is not read.
        """
        if self.metadata.current is None:
            return
        scan = self.table.newScan().useSnapshot(self.metadata.current.id)
        if has_few_manifests(self.metadata.current.summary):
            scan = scan.planWith(in_this_thread(self.storage.classes))
        scan = scan.includeColumnStats() if with_bounds else scan
        files = scan.filter(self._condition(bounds)).planFiles()
        try:
            for task in each(files):
                file = self.deleted.planned(task)
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

    def live(self, names: Sequence[str], within: str, least: int | None, most: int | None) -> Iterator[pa.Table]:
        """Yield columns of the live rows of files that may have rows of a range; see :class:`cdc_lib.ports.LakeRows`."""
        lake, bounds = self.format.lake, KeyBounds()
        if within == lake.primary_key[0]:
            bounds = bounds_of(lake, named(self.fields, [within])[0], least, most)
        for file in self.planned(bounds):
            with self.open.stream(file) as stream:
                stored, _ = self.open.stored(file, stream)
                yield from (stored.at(positions, names) for positions in stored.others(np.zeros(0, np.int64)))

    def _condition(self, bounds: KeyBounds) -> Any:
        """Return Iceberg's condition of rows within bounds."""
        condition = self._expression("alwaysTrue")
        for name, value in (("greaterThanOrEqual", bounds.least), ("lessThanOrEqual", bounds.most)):
            if value is not None:
                end = self._expression(name, self.format.lake.primary_key[0], value)
                condition = self._expression("and", condition, end)
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

    def add(self, file: NewFile, done: Replacement, of: OldFile | None = None) -> None:
        """Let a merge add a data file that was written.

        Args:
            file: the file.
            done: gets it.
            of: the file of whose rows it is a copy, in the same partition; None for new rows.
        """
        config = self.storage.classes.static("org.apache.iceberg.MetricsConfig", "forTable")(self.table)
        metrics = parquet_metrics(file.footer, config, self.storage.classes)
        spec, order = self.table.spec(), self.table.sortOrder()
        partition = self._values(file.partition) if file.partition else None
        if of is not None:
            spec, order, partition = self._place(of)
        builder = self.storage.classes.static("org.apache.iceberg.DataFiles", "builder")(spec)
        builder = builder.withPath(file.location).withFormat("parquet").withFileSizeInBytes(file.size)
        builder = builder.withMetrics(metrics)
        builder = builder if order is None else builder.withSortOrder(order)
        builder = builder if partition is None else builder.withPartition(partition)
        done.data[file.location, WHOLE] = builder.build()

    def _values(self, partition: str) -> Any:
        parse = self.storage.classes.static("org.apache.iceberg.SingleValueParser", "fromJson")
        return parse(self.table.spec().partitionType(), partition)

    def _place(self, file: OldFile) -> tuple[Any, Any, Any]:
        """Return partition spec, sort order and partition of a file; None for those that it does not have."""
        spec = self.table.specs().get(file.java.specId())
        order = self.table.sortOrders().get(file.java.sortOrderId())
        return spec, order, file.java.partition() if spec.isPartitioned() else None

    def delete(self, deletes: Sequence[DeletesOf], done: Replacement) -> None:
        """Delete rows: as the table's layout says, they are marked, or the others of their files are written again.

        Args:
            deletes: the rows of each file, at least one.
            done: gets the files.
        """
        marked, copied = list[DeletesOf](), list[tuple[OldFile, Rows]]()
        for one in deletes:
            file, dead = self.known[one.file.location], one.dead.joined(one.positions)
            done.deleted += len(one.positions)
            done.removed_deletes |= file.own_deletes
            is_whole = len(dead) == one.file.rows
            # Shared deletes of a file that is removed would count as deletes of other rows.
            if len(one.dead.shared) or not (is_whole or self.format.lake.copies_on_write):
                marked.append(one)
                continue
            done.removed_data[one.file.location, WHOLE] = file.java
            done.uncounted += len(dead) - one.file.own_deletes - len(one.positions)
            if not is_whole:
                copied.append((file, dead))
        self.deleted.write(marked, self.known, done)
        self._copy(copied, done)

    def _copy(self, files: Sequence[tuple[OldFile, Rows]], done: Replacement) -> None:
        """Write the rows of files again, without those at some positions.

        A large file becomes another one in its partition, in memory that some of its row groups need; small ones are written together.

        Args:
            files: each with positions of rows, ascending.
            done: gets the new files.
        """
        fields, lock = (*self.fields, *(LINEAGE if self.deleted.format_version >= SINCE else ())), Lock()
        small, copied = list[pa.Table](), Replacement()

        def copy(both: tuple[OldFile, Rows]) -> None:
            (file, without), own, together = both, Replacement(), list[pa.Table]()
            chunks = self._left(file, without, fields)
            first, second = next(chunks), next(chunks, None)
            if second is not None:
                self._copy_large(file, chain([first, second], chunks), own)
            with lock:
                if second is None:
                    small.append(first)
                    if sum(rows.nbytes for rows in small) > _COPY_BYTES:
                        together, small[:] = small[:], []
            if together:
                self.write(pa.concat_tables(together), own, fields)
            own.copied = file.stored.rows - len(without)
            with lock:
                copied.add(own)

        with ThreadPoolExecutor(_COPIED_AT_ONCE) as threads:
            list(threads.map(copy, files))
        if small:
            self.write(pa.concat_tables(small), copied, fields)
        done.add(copied)

    def _left(self, file: OldFile, without: Rows, fields: Sequence[pa.Field]) -> Iterator[pa.Table]:
        """Yield the rows of a file that are not at some positions, with their lineage; many row groups together."""
        java, is_left = file.java, np.ones(file.stored.rows, np.bool_)
        is_left[without] = False
        first, sequence = java.firstRowId(), int(java.dataSequenceNumber())
        found, size = list[pa.Table](), 0
        with self.open.stream(file.stored) as stream:
            for rows, positions in groups_at(stream, fields, np.flatnonzero(is_left)):
                found.append(with_lineage(rows, positions, first, sequence) if LINEAGE[0] in fields else rows)
                size += rows.nbytes
                if size > _COPY_BYTES:
                    yield pa.concat_tables(found)
                    found, size = [], 0
        if found:
            yield pa.concat_tables(found)

    def _copy_large(self, file: OldFile, chunks: Iterable[pa.Table], done: Replacement) -> None:
        """Write rows of a file as another one in its partition."""
        spec, _, partition = self._place(file)
        place = (new_name(".parquet"),) if partition is None else (spec, partition, new_name(".parquet"))
        location = str(self.table.locationProvider().newDataLocation(*place))
        with self.storage.created(location) as to:
            self.format.write(chunks, to)
            written = NewFile.read(location, to)
        self.add(written, done, file)
