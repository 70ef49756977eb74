"""Applies changes to an Iceberg table: rows are found, made and written in Arrow; nothing is committed here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.apply.complete import MovedKeys
from cdc_lib.apply.fills import Fill
from cdc_lib.apply.parts import PART_BYTES, ReadPart, parts_of
from cdc_lib.apply.rows import with_column
from cdc_lib.apply.table_part import DeletesOf, KeyBounds, TablePart
from cdc_lib.apply.tasks import ChangesTask, joined
from cdc_lib.lake.computed import columns_in
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.ports import MergeChanges
from spark_jobs.changes.in_spark import fills_here, with_computed_here
from spark_jobs.iceberg.row_delta import Replacement
from spark_jobs.iceberg.row_files import RowFiles
from spark_jobs.iceberg.spread_rows import SpreadRows
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.parallelism import in_threads

PARTS_AT_ONCE = 2
"""Parts of a table that are applied at the same time: each takes memory."""

SMALL_BYTES = PART_BYTES // 4
"""Rows of fewer bytes are written together with other ones."""


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Writes rows of one table as it was loaded.

    Args:
        session: for computed columns.
        files: of the table.
        lake: the table as this project knows it.
        of: the source table, for messages.
        rekeyed: whether another key was in force, so that several rows may have one key.
    """

    session: SparkSession
    files: RowFiles
    lake: LakeTable
    of: str
    rekeyed: bool

    @classmethod
    def of_table(
        cls, session: SparkSession, table: Any, metadata: TableMetadata, lake: LakeTable, of: str, *, rekeyed: bool
    ) -> ArrowRows:
        """Return the writer of a table, for the Java process of a session.

        Args:
            session: a Spark session.
            table: Iceberg's Java object.
            metadata: of the table.
            lake: the table as this project knows it.
            of: the source table, for messages.
            rekeyed: whether another key was in force, so that several rows may have one key.

        Raises:
            MergeError: the table has files that are not written here.
        """
        return cls(session, RowFiles.of_table(session, table, metadata, lake), lake, of, rekeyed)

    def apply(self, changes: MergeChanges, commit: TableCommit) -> Replacement:
        """Write what changes make of the table's rows; many are applied in parts, see :mod:`cdc_lib.apply.parts`.

        Args:
            changes: the changes.
            commit: other rows of the table that are removed or marked.

        Raises:
            MergeError: not all rows of the keys were found, or a row is incomplete.
        """
        part = self._part(changes, commit)
        tasks: Sequence[ChangesTask] = changes.spread(self.files.fields) if changes.spread is not None else ()
        spread = SpreadRows.of(self.session, self.files, part) if tasks else None
        done, found = self._applied(changes.read(self.files), part) if spread is None else spread.apply(tasks)
        self.files.delete([one for one in found.values() if len(one.positions)], done)
        return done

    def _applied(self, changes: Iterable[pa.Table], part: TablePart) -> tuple[Replacement, dict[str, DeletesOf]]:
        """Apply changes in this process; returns what was written, and by file the rows that are deleted."""
        done, found, small, lock = Replacement(), dict[str, DeletesOf](), list[pa.Table](), Lock()

        def apply_part(read: ReadPart) -> None:
            result, own = part.result(read(), self.files.planned), Replacement()
            rows = with_computed_here(self.session, result.rows, self.lake).select(self._names)
            if is_large := rows.nbytes > SMALL_BYTES:
                self._write([rows], own)
            own.changes = result.changes
            with lock:
                done.add(own)
                found.update({one.file.location: joined(one, found.get(one.file.location)) for one in result.touched})
                if not is_large:
                    small.append(rows)

        key = () if self.lake.mode == "append" else self.lake.primary_key
        folder, together = self.session.conf.get("spark.local.dir", None), MovedKeys(key) if key else None
        with parts_of(changes, key, folder, together) as parts:
            in_threads(self.session, apply_part, parts, PARTS_AT_ONCE)
        if part.looks_at_all:
            self._apply_rules(part, found, small, done)
        self._write(small, done)
        return done, found

    def _part(self, changes: MergeChanges, commit: TableCommit) -> TablePart:
        rules = sorted(commit.supersedes, key=lambda rule: rule.before)
        fills = fills_here(self.session, commit.fills, self.lake.columns, self.files.fields)
        part = TablePart(self.lake, self.of, self.files.open, rules, fills, commit.unfinished_epochs, changes.guard)
        asked = replace(part, rekeyed=self.rekeyed, reselect=changes.reselect, to_come=changes.to_come)
        return replace(asked, erases=commit.erases)

    def _apply_rules(
        self, part: TablePart, found: dict[str, DeletesOf], left: list[pa.Table], done: Replacement
    ) -> None:
        """Remove rows that changes do not have the keys of, and fill columns of those that stay.

        Args:
            part: has the rules.
            found: by file, rows that changes touch; gets those that are removed or written again.
            left: rows that are still to be written; gets what stays of removed ones, and filled ones. Many are written.
            done: gets the files of these.
        """

        def write(tables: list[pa.Table]) -> None:
            left.extend(self._recomputed(table, part.fills) for table in tables)
            if sum(table.nbytes for table in left) > PART_BYTES:
                self._write(left, done)
                left.clear()

        for file in self.files.planned(KeyBounds()):
            found[file.location] = part.with_others(file, found.get(file.location), write)

    def _recomputed(self, rows: pa.Table, fills: Sequence[Fill]) -> pa.Table:
        """Compute the columns of existing rows again that follow from a filled one."""
        names = {fill.name.lower() for fill in fills}
        due = {name.lower() for name, text in self.lake.computed.items() if names & columns_in(text)}
        if not due:
            return rows
        new = with_computed_here(self.session, rows, self.lake)
        for field in self.files.fields:
            if field.name.lower() in due:
                rows = with_column(rows, field.name, new.column(field.name))
        return rows

    @property
    def _names(self) -> list[str]:
        return [one.name for one in self.files.fields]

    def _write(self, tables: Sequence[pa.Table], done: Replacement) -> None:
        """Write rows in the columns of the table, together."""
        rows = pa.concat_tables([pa.schema(self.files.fields).empty_table(), *tables])
        done.rows += rows.num_rows
        if not rows.num_rows:
            return
        self.files.format.refuse(rows)
        self.files.write(rows, done)
