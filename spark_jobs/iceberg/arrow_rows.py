"""Replaces few rows of an Iceberg table by their keys, without Spark SQL: files and deletion vectors are written in Arrow.

Iceberg's own code plans which files may have the keys, gives the locations and the metrics, and commits.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from cdc_lib.apply.complete import completed
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
from cdc_lib.apply.decide import FEW_BYTES, NeedsSpark
from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows
from cdc_lib.apply.lineage import LINEAGE, SINCE, with_lineage
from cdc_lib.apply.partitions import partitions_of
from cdc_lib.apply.removals import removed_by, with_marks, with_mode
from cdc_lib.apply.rows import Order, last_changes, less, order_of
from cdc_lib.lake.layout import lowest_values
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import ORDER, LakeTable
from cdc_lib.model.layout import SortField
from cdc_lib.model.manifest import ABSENT, OP
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import IS_DELETED
from spark_jobs.changes.in_spark import with_computed_here
from spark_jobs.iceberg.branches import wrong_rows
from spark_jobs.iceberg.deleted_rows import DeletedRows, OldFile, new_name
from spark_jobs.iceberg.file_streams import opened, parquet_metrics, write_file
from spark_jobs.iceberg.key_check import COUNTED_KEYS
from spark_jobs.iceberg.row_delta import WHOLE, Replacement, each, has_few_manifests, in_this_thread
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.iceberg.truncated import prunes
from spark_jobs.runtime.java_classes import JavaClasses, java_classes

MOST_RECORDS, MOST_RECORDS_HERE = 1_000_000, 20_000_000
"""Most rows whose keys this process reads: those of more are read by all executors, or by the cores of this machine."""

_ENCRYPTED = "encryption.key-id"
_OVERRIDES = {CODEC: "spark.sql.iceberg.compression-codec", LEVEL: "spark.sql.iceberg.compression-level"}
"""Settings of a session that count more than the properties of a table."""


@dataclass(frozen=True, slots=True)
class _KeysOfChanges:
    """The keys of changes, and what is found of them in the table.

    Args:
        keys: of the last changes, which are numbered in this order; None without changes.
        order: of these changes; None if no row of the table is newer.
        lacking: whether a change of the key lacks cells.
        outdated: whether the table has a newer row.
        old: the table's rows of the keys that lack cells.
        marked: the table's other rows that a statement or snapshot removes, with their marks (soft_delete).
    """

    keys: AskedKeys | None
    order: Order | None
    lacking: NDArray[np.bool_]
    outdated: NDArray[np.bool_]
    old: list[pa.Table]
    marked: list[pa.Table]

    @classmethod
    def of(cls, keys: pa.Table, changes: pa.Table, order: Order | None) -> _KeysOfChanges:
        asked = AskedKeys([one.combine_chunks() for one in keys.columns]) if keys.num_rows else None
        lacking, outdated = np.zeros(keys.num_rows, np.bool_), np.zeros(keys.num_rows, np.bool_)
        partial = changes.select(keys.column_names).filter(pc.is_valid(changes.column(ABSENT)))
        if partial.num_rows and asked is not None:
            _, numbers = asked.find(KeyRows.of(partial.columns, None))
            lacking[numbers] = True
        return cls(asked, order, lacking, outdated, [], [])

    def positions(self, file: pa.NativeFile, key: Sequence[pa.Field]) -> tuple[Rows, Rows]:
        """Return the positions of their rows in a data file, ascending, and the number of the key of each."""
        none = np.zeros(0, np.int64)
        return positions_of(file, key, self.keys) if self.keys is not None else (none, none)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Writes rows of one table as it was loaded.

    Args:
        session: for computed columns.
        table: Iceberg's Java object.
        io: its storage, Iceberg's FileIO.
        metadata: of the table.
        properties: of the table, as this session overrides them.
        lake: the table as this project knows it.
        fields: of the table.
        classes: cache of Iceberg's classes.
        of: the source table, for messages.
        most_records: rows whose keys are read.
        deleted: of the table.
    """

    session: SparkSession
    table: Any
    io: Any
    metadata: TableMetadata
    properties: Mapping[str, str]
    lake: LakeTable
    fields: tuple[pa.Field, ...]
    classes: JavaClasses
    of: str
    most_records: int
    deleted: DeletedRows

    @classmethod
    def of_table(
        cls, session: SparkSession, table: Any, metadata: TableMetadata, lake: LakeTable, of: str
    ) -> ArrowRows:
        """Return the writer of a table, for the Java process of a session.

        Raises:
            NeedsSpark: the table is one that only Spark writes.
        """
        plain, properties = metadata.plain, metadata.properties
        if _ENCRYPTED in properties:
            raise NeedsSpark("the table is encrypted")
        overrides = {one: session.conf.get(name, None) for one, name in _OVERRIDES.items()}
        properties = {**properties, **{one: text for one, text in overrides.items() if text is not None}}
        storage, version, codec = table.io(), int(plain["format-version"]), codec_of(properties)
        most = MOST_RECORDS_HERE if (session.sparkContext.master or "").startswith("local") else MOST_RECORDS
        fields, classes = lake_fields(metadata.schema["fields"]), java_classes(session)
        deleted = DeletedRows(table, storage, classes, version, codec)
        rows = cls(session, table, storage, metadata, properties, lake, fields, classes, of, most, deleted)
        if any(pa.types.is_floating(one.type) for one in rows.key_fields):
            raise NeedsSpark("a column of the key is inexact")
        return rows

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The fields of the key's columns."""
        return self._named(self.lake.primary_key)

    def _named(self, names: Sequence[str]) -> tuple[pa.Field, ...]:
        by_name = {one.name: one for one in self.fields}
        return tuple(by_name[name] for name in names)

    def append(self, rows: pa.Table) -> Replacement:
        """Write all rows; nothing is committed."""
        return self._with_rows(Replacement(rows.num_rows), rows)

    def replace(self, changes: pa.Table, rules: Sequence[Superseded], *, guard: bool) -> Replacement:
        """Write the last change of each key; nothing is committed.

        Args:
            changes: with ``_absent``; see :func:`cdc_lib.apply.complete.completed`.
            rules: other rows of the table that are removed or marked, in order.
            guard: whether the table may have newer rows, which stay; all changes are complete then.

        Raises:
            NeedsSpark: a file of the table is one that only Spark reads, a cell is not known, or a row has no key.
            MergeError: not all rows of the keys were found.
        """
        key, keeps_deleted = self.lake.primary_key, self.lake.mode == "soft_delete"
        last = last_changes(changes, key, begins=False)
        keys = last.select(key).combine_chunks()
        if any(one.null_count for one in keys.columns):
            raise NeedsSpark("a row has no key")
        done, asked = Replacement(last.num_rows), _KeysOfChanges.of(keys, changes, order_of(last) if guard else None)
        if last.num_rows or rules:
            files = [*self._files(keys if not rules else None)]
            of_keys, removed = self._delete(files, asked, rules, done)
            # How many rows had to be found is certain if they are those of all keys, or of all that were not inserted.
            inserts = pc.sum(pc.equal(last.column(OP), INSERT)).as_py() or 0
            found = of_keys + int(asked.outdated.sum())
            if found not in (last.num_rows, last.num_rows - inserts) and last.num_rows <= COUNTED_KEYS:
                self._count(files, keys, found)
            # A snapshot that replaces all rows also replaces those that another writer made twice.
            if of_keys - removed > last.num_rows:
                raise wrong_rows(
                    self.of, f"{counted(of_keys - removed, 'row')} of {counted(last.num_rows, 'changed key')}"
                )
        if asked.lacking.any():
            old = pa.concat_tables([pa.schema(self.fields).empty_table(), *asked.old])
            last = last_changes(completed(changes, old, key, keeps_deleted=keeps_deleted), key, begins=False)
        rows = with_mode(last, self.lake.mode, rules)
        left = ~asked.outdated if keeps_deleted else ~asked.outdated & pc.not_equal(last.column(OP), DELETE).to_numpy()
        return self._with_rows(done, rows.filter(pa.array(left)), asked.marked)

    def _with_rows(self, done: Replacement, rows: pa.Table, marked: Sequence[pa.Table] = ()) -> Replacement:
        rows = with_computed_here(self.session, rows, self.lake).select([one.name for one in self.fields])
        rows = pa.concat_tables([rows, *marked])
        done.rows = rows.num_rows
        if not rows.num_rows:
            return done
        for column, low in lowest_values(self.lake.layout, self.lake.columns).items():
            least = pc.min(rows.column(column)).as_py()
            if least is not None and least < Decimal(low):
                raise NeedsSpark("a partition cannot hold a value")
        if not {one.column for one in self.lake.layout.sort_by} <= {*rows.column_names}:
            raise NeedsSpark("a column of the sort order has another name")
        self._write(rows, self.fields, done)
        return done

    def _write(self, rows: pa.Table, fields: Sequence[pa.Field], done: Replacement) -> None:
        """Write rows with fields as data files, one of each partition."""
        order = self.lake.layout.sort_by or [SortField(name) for name in self.lake.primary_key or ORDER]
        for partition, part in partitions_of(in_order(rows, order), self.metadata.schema["fields"], self.metadata.spec):
            location, file = self._written(part, fields, partition)
            done.data[location, WHOLE] = file

    def _delete(
        self, files: Sequence[OldFile], asked: _KeysOfChanges, rules: Sequence[Superseded], done: Replacement
    ) -> tuple[int, int]:
        """Delete the rows of the keys, without those that are newer than their changes, and those that rules remove or mark.

        Returns:
            The number of rows of the keys, and how many of them a rule removes as well.
        """
        marked, copied, of_keys, removed = list[tuple[OldFile, Rows]](), list[tuple[OldFile, Rows]](), 0, 0
        for file in files:
            with self._opened(file) as stream:
                positions, numbers = asked.positions(stream, self.key_fields)
                if not len(positions) and not rules:
                    continue
                own, shared = self.deleted.read(file)
                dead = np.union1d(own, shared)
                positions = self._replaced(stream, positions, numbers, dead, asked)
                of_keys += len(positions)
                if rules:
                    is_mirror = self.lake.mode == "mirror"
                    removed += len(self._removed(stream, positions, rules, asked)) if is_mirror else 0
                    others = np.setdiff1d(np.arange(int(file.java.recordCount())), np.union1d(dead, positions))
                    positions = np.union1d(positions, self._removed(stream, others, rules, asked))
            if not len(positions):
                continue
            done.deleted += len(positions)
            done.removed_deletes |= {one.key: one.java for one in file.deletes if one.is_own}
            positions = np.union1d(own, positions)
            is_whole = len(positions) == int(file.java.recordCount())
            # Shared deletes of a file that is removed would count as deletes of other rows.
            if len(shared) or not (is_whole or self.lake.copies_on_write):
                marked.append((file, positions))
                continue
            done.removed_data[file.location, WHOLE] = file.java
            if not is_whole:
                copied.append((file, positions))
        self.deleted.write(marked, done)
        if copied:
            self._copy(copied, done)
        return of_keys, removed

    def _replaced(
        self, stream: pa.NativeFile, positions: Rows, numbers: Rows, dead: Rows, asked: _KeysOfChanges
    ) -> Rows:
        """Return those of the positions of keys that are live and not newer than their changes.

        Args:
            stream: the data file.
            positions: of rows of the keys, ascending.
            numbers: of their keys.
            dead: positions that are deleted already.
            asked: the keys, which get what is found of them.
        """
        is_live = ~np.isin(positions, dead, assume_unique=True)
        positions, numbers = positions[is_live], numbers[is_live]
        if (needed := asked.lacking[numbers]).any():
            asked.old.append(rows_at(stream, self.fields, positions[needed]))
        if asked.order is None or not len(positions):
            return positions
        theirs = order_of(rows_at(stream, self._named(ORDER), positions))
        is_newer = less(tuple(part[numbers] for part in asked.order), theirs, or_equal=False)
        asked.outdated[numbers[is_newer]] = True
        return positions[~is_newer]

    def _removed(
        self, stream: pa.NativeFile, positions: Rows, rules: Sequence[Superseded], asked: _KeysOfChanges
    ) -> Rows:
        """Return those of the positions whose rows a rule removes; ``asked`` gets the rows that stay with marks."""
        marks = {IS_DELETED} if self.lake.mode == "soft_delete" else set[str]()
        needed = {*ORDER, *marks, *(name for rule in rules for name in rule.columns)}
        removed = removed_by(rules, rows_at(stream, self._named(sorted(needed)), positions), self.lake.mode)
        positions, removed = positions[removed >= 0], removed[removed >= 0]
        if marks and len(positions):
            asked.marked.append(with_marks(rows_at(stream, self.fields, positions), removed, rules))
        return positions

    def _copy(self, files: Sequence[tuple[OldFile, Rows]], done: Replacement) -> None:
        """Write the rows of files again, without those at some positions.

        Args:
            files: each with positions of rows, ascending.
            done: gets the new files.

        Raises:
            NeedsSpark: they are large.
        """
        if sum(int(file.java.fileSizeInBytes()) for file, _ in files) > FEW_BYTES:
            raise NeedsSpark("large files are written again")
        has_lineage, copies = self.deleted.format_version >= SINCE, list[pa.Table]()
        fields = (*self.fields, *(LINEAGE if has_lineage else ()))
        for file, without in files:
            java = file.java
            kept = np.setdiff1d(np.arange(int(java.recordCount())), without, assume_unique=True)
            with self._opened(file) as stream:
                rows = rows_at(stream, fields, kept)
            done.copied += len(kept)
            copies.append(
                with_lineage(rows, kept, java.firstRowId(), int(java.dataSequenceNumber())) if has_lineage else rows
            )
        self._write(pa.concat_tables(copies), fields, done)

    def _count(self, files: Sequence[OldFile], keys: pa.Table, known: int) -> None:
        """Count the rows of the keys in another way.

        Raises:
            MergeError: they are others than those that were found.
        """
        found = 0
        for file in files:
            with self._opened(file) as stream:
                own, shared = self.deleted.read(file)
                found += len(np.setdiff1d(joined_positions(stream, self.key_fields, keys), np.union1d(own, shared)))
        if found != known:
            raise wrong_rows(
                self.of,
                f"found {counted(known, 'row')} of {counted(keys.num_rows, 'changed key')}, and there are {found}",
            )

    def _files(self, keys: pa.Table | None) -> Iterator[OldFile]:
        """Yield the files of the table's snapshot that may have one of the keys; all for None.

        Raises:
            NeedsSpark: they have very many rows, or their rows are deleted in another way than by deletion vectors.
        """
        if self.metadata.current is None:
            return
        scan, records = self.table.newScan().useSnapshot(self.metadata.current.id), 0
        if has_few_manifests(self.metadata.current.summary):
            scan = scan.planWith(in_this_thread(self.classes))
        planned = (scan if keys is None else scan.filter(self._bounds(keys))).planFiles()
        try:
            for task in each(planned):
                file = self.deleted.planned(task)
                records += int(file.java.recordCount())
                if records > self.most_records:
                    raise NeedsSpark("the keys of very many rows have to be read")
                yield file
        finally:
            planned.close()

    def _bounds(self, keys: pa.Table) -> Any:
        """Return the condition that a file of the keys fulfils: Iceberg compares the bounds of the first column."""
        expressions, first = partial(self.classes.static, "org.apache.iceberg.expressions.Expressions"), keys.column(0)
        name, is_number = self.lake.primary_key[0], pa.types.is_integer(first.type)
        # Python has no dates of the year 0.
        least, most = pc.min_max(first).as_py().values() if is_number else (None, None)
        # A point in a name would be read as a path.
        if "." in name or not is_number or not prunes(self.lake, name, str(least)):
            return expressions("alwaysTrue")()
        within = (("greaterThanOrEqual", least), ("lessThanOrEqual", most))
        return expressions("and")(*(expressions(compares)(name, value) for compares, value in within))

    def _opened(self, file: OldFile) -> pa.NativeFile:
        return opened(self.io, file.location, int(file.java.fileSizeInBytes()))

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
        parse = self.classes.static("org.apache.iceberg.SingleValueParser", "fromJson")
        values = parse(spec.partitionType(), partition) if partition else None
        place = (name,) if values is None else (spec, values, name)
        location = str(self.table.locationProvider().newDataLocation(*place))
        written = data.getvalue()
        write_file(self.io, location, written)
        config = self.classes.static("org.apache.iceberg.MetricsConfig", "forTable")(self.table)
        metrics = parquet_metrics(written, config, self.classes)
        builder = self.classes.static("org.apache.iceberg.DataFiles", "builder")(spec)
        builder = builder.withPath(location).withFormat("parquet").withFileSizeInBytes(len(written))
        builder = builder.withMetrics(metrics).withSortOrder(self.table.sortOrder())
        builder = builder if values is None else builder.withPartition(values)
        return location, builder.build()
