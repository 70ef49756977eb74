"""Applies changes to an Iceberg table without Spark SQL: rows are found, made and written in Arrow; nothing is committed here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cdc_lib.apply.complete import completed
from cdc_lib.apply.data_files import joined_positions, named, positions_of
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.fills import Fill, filled
from cdc_lib.apply.key_rows import AskedKeys
from cdc_lib.apply.old_rows import KeysOfChanges
from cdc_lib.apply.parts import PART_BYTES, ReadPart, parts_of
from cdc_lib.apply.removals import with_mode
from cdc_lib.apply.rows import last_changes, order_of, with_column
from cdc_lib.apply.versions import EarliestChange, spliced
from cdc_lib.lake.computed import columns_in
from cdc_lib.lake.layout import lowest_values
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeTable
from cdc_lib.model.manifest import ABSENT, OP
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import Superseded, TableCommit
from cdc_lib.model.table_mode import IS_CURRENT, ONE_VERSION_MODES, VALID_TO
from spark_jobs.changes.in_spark import fills_here, with_computed_here
from spark_jobs.iceberg.branches import wrong_rows
from spark_jobs.iceberg.deleted_rows import OldFile
from spark_jobs.iceberg.key_check import COUNTED_KEYS
from spark_jobs.iceberg.row_delta import Replacement
from spark_jobs.iceberg.row_files import DeletesOf, RowFiles
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.iceberg.truncated import prunes
from spark_jobs.runtime.parallelism import in_threads

T = TypeVar("T")

PARTS_AT_ONCE = 2
"""Parts of a table that are applied at the same time: each takes memory."""

SMALL_BYTES = PART_BYTES // 4
"""Rows of fewer bytes are written together with other ones."""


@dataclass(frozen=True, slots=True)
class _PartResult:
    """What a part of the changes makes.

    Args:
        changes: their number, in modes with one row of a key the last one of each key.
        rows: new ones, without computed columns.
        touched: rows of the table's files.
    """

    changes: int
    rows: pa.Table
    touched: Sequence[DeletesOf]


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Writes rows of one table as it was loaded.

    Args:
        session: for computed columns.
        files: of the table.
        lake: the table as this project knows it.
        of: the source table, for messages.
    """

    session: SparkSession
    files: RowFiles
    lake: LakeTable
    of: str

    @classmethod
    def of_table(
        cls, session: SparkSession, table: Any, metadata: TableMetadata, lake: LakeTable, of: str
    ) -> ArrowRows:
        """Return the writer of a table, for the Java process of a session.

        Args:
            session: a Spark session.
            table: Iceberg's Java object.
            metadata: of the table.
            lake: the table as this project knows it.
            of: the source table, for messages.

        Raises:
            NeedsSpark: the table is one that only Spark writes.
        """
        rows = cls(session, RowFiles.of_table(session, table, metadata, lake), lake, of)
        if any(pa.types.is_floating(one.type) for one in rows.key):
            raise NeedsSpark("a column of the key is inexact")
        return rows

    @property
    def key(self) -> tuple[pa.Field, ...]:
        """The fields of the key's columns."""
        return named(self.files.fields, self.lake.primary_key)

    def apply(self, changes: Iterable[pa.Table], commit: TableCommit, *, guard: bool) -> Replacement:
        """Write what changes make of the table's rows; many are applied in parts, see :mod:`cdc_lib.apply.parts`.

        Args:
            changes: with ``_absent``; see :func:`cdc_lib.apply.rows.changes_of`.
            commit: other rows of the table that are removed or marked.
            guard: whether the table may have newer rows, which stay; all changes are complete then.

        Raises:
            NeedsSpark: a file of the table is one that only Spark reads, a cell is not known, or a row has no key.
            MergeError: not all rows of the keys were found.
        """
        rules = sorted(commit.supersedes, key=lambda rule: rule.before)
        fills = fills_here(self.session, commit.fills, self.lake.columns, self.files.fields)
        done, found, small, lock = Replacement(), dict[str, DeletesOf](), list[pa.Table](), Lock()

        def apply_part(read: ReadPart) -> None:
            part, own = self._of_part(read(), rules, fills, commit.unfinished_epochs, guard=guard), Replacement()
            rows = with_computed_here(self.session, part.rows, self.lake).select(self._names)
            if is_large := rows.nbytes > SMALL_BYTES:
                self._write([rows], own)
            own.changes = part.changes
            with lock:
                done.add(own)
                found.update({one.file.location: one.joined(found.get(one.file.location)) for one in part.touched})
                if not is_large:
                    small.append(rows)

        key = () if self.lake.mode == "append" else self.lake.primary_key
        with parts_of(changes, key, self.session.conf.get("spark.local.dir", None)) as parts:
            in_threads(self.session, apply_part, parts, PARTS_AT_ONCE)
        if rules or fills:
            self._apply_rules(rules, fills, found, small, done)
        self._write(small, done)
        self.files.delete([one for one in found.values() if len(one.positions)], done)
        return done

    def _of_part(
        self,
        changes: pa.Table,
        rules: Sequence[Superseded],
        fills: Sequence[Fill],
        unfinished: Sequence[int],
        *,
        guard: bool,
    ) -> _PartResult:
        if self.lake.mode in ONE_VERSION_MODES:
            return self._replaced(changes, rules, fills, guard=guard)
        changes = changes.drop_columns([ABSENT])
        if self.lake.mode == "append" or not changes.num_rows:
            return _PartResult(changes.num_rows, changes, ())
        part = self._spliced(changes, rules, unfinished, guard=guard)
        return replace(part, rows=filled(part.rows, fills))

    def _replaced(
        self, changes: pa.Table, rules: Sequence[Superseded], fills: Sequence[Fill], *, guard: bool
    ) -> _PartResult:
        """Return the last change of each key, and the rows that it replaces."""
        key, keeps_deleted = self.lake.primary_key, self.lake.mode == "soft_delete"
        last = last_changes(changes, key, begins=False)
        keys = self._keys(last)
        asked = KeysOfChanges.of(self.key, keys, changes, order_of(last) if guard else None)
        touched: Sequence[DeletesOf] = ()
        if last.num_rows:
            files = [*self.files.planned(self._bounds(keys))]
            touched, removed = self._deletes(files, asked, rules)
            of_keys = sum(len(one.positions) for one in touched)
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
            old = filled(pa.concat_tables([pa.schema(self.files.fields).empty_table(), *asked.old]), fills)
            last = last_changes(completed(changes, old, key, keeps_deleted=keeps_deleted), key, begins=False)
        rows = with_mode(last, self.lake.mode, rules)
        left = ~asked.outdated if keeps_deleted else ~asked.outdated & pc.not_equal(last.column(OP), DELETE).to_numpy()
        return _PartResult(last.num_rows, rows.filter(pa.array(left)), touched)

    def _of_files(self, files: Sequence[OldFile], find: Callable[[OldFile], T | None]) -> list[T]:
        """Return what is found in files, in any order."""
        found: list[T] = []

        def look(file: OldFile) -> None:
            if (result := find(file)) is not None:
                found.append(result)

        in_threads(self.session, look, files, self.files.storage.at_once(file.location for file in files))
        return found

    def _deletes(
        self, files: Sequence[OldFile], asked: KeysOfChanges, rules: Sequence[Superseded]
    ) -> tuple[list[DeletesOf], int]:
        """Find the rows of the keys, and which of them are not newer than their changes; also returns how many of these a rule removes."""

        def find(file: OldFile) -> tuple[DeletesOf, int] | None:
            with self.files.stream(file) as stream:
                positions, numbers = asked.positions(stream)
                if not len(positions):
                    return None
                stored, own, shared = self.files.stored(file, stream)
                positions = asked.replaced(stored, positions, numbers)
                counts = bool(rules) and self.lake.mode == "mirror"
                removed = len(stored.removed(positions, rules, "mirror")[0]) if counts else 0
            # A rule may remove a row that is newer than its change.
            return DeletesOf(file, own, shared, positions, positions), removed

        found = self._of_files(files, find)
        return [of_file for of_file, _ in found], sum(removed for _, removed in found)

    def _spliced(
        self, changes: pa.Table, rules: Sequence[Superseded], unfinished: Sequence[int], *, guard: bool
    ) -> _PartResult:
        """Return the versions that changes make, and those that they replace.

        Args:
            changes: complete, at least one.
            rules: positions at which rows end without a change, in order.
            unfinished: see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`.
            guard: whether the table may have changes that are newer than some of these.
        """
        first, keys = EarliestChange.of(changes), self._keys(last_changes(changes, self.lake.primary_key, begins=False))
        found, existing = self._versions(keys, first, guard=guard, ends=bool(rules))
        of_mode = {*self.lake.primary_key, *MODE_COLUMNS["scd2"]}
        computed = {name.lower() for name in self.lake.computed}
        own = [one.name for one in self.files.fields if one.name not in of_mode and one.name.lower() not in computed]
        new, stays = spliced(changes, existing, self.lake.primary_key, own, rules, unfinished)
        touched, start = list[DeletesOf](), 0
        for of_file in found:
            stop = start + len(of_file.positions)
            touched.append(replace(of_file, positions=of_file.positions[~stays[start:stop]]))
            start = stop
        return _PartResult(changes.num_rows, new, touched)

    def _versions(
        self, keys: pa.Table, first: EarliestChange, *, guard: bool, ends: bool
    ) -> tuple[list[DeletesOf], pa.Table]:
        """Return by file the positions of the versions that changes may touch, and these versions.

        Args:
            keys: of the changes.
            first: of the changes.
            guard: as in :meth:`_spliced`.
            ends: whether rules end versions of other keys, so that all of these keys have to be found.
        """
        asked = AskedKeys([one.combine_chunks() for one in keys.columns])
        condition = self._bounds(keys)
        if first.at is not None and not guard and not ends:
            since = self.files.expression("greaterThanOrEqual", VALID_TO, first.at.isoformat())
            usable = self.files.expression("or", self.files.expression("equal", IS_CURRENT, True), since)
            condition = self.files.expression("and", condition, usable)

        def find(file: OldFile) -> tuple[DeletesOf, pa.Table] | None:
            with self.files.stream(file) as stream:
                of_keys, _ = positions_of(stream, self.key, asked)
                if not len(of_keys):
                    return None
                stored, own, shared = self.files.stored(file, stream)
                live = np.setdiff1d(of_keys, stored.dead, assume_unique=True)
                rows = stored.at(live)
            touched = first.may_touch(rows, guard=guard)
            return DeletesOf(file, own, shared, of_keys, live[touched]), rows.filter(pa.array(touched))

        found = self._of_files([*self.files.planned(condition)], find)
        versions = (rows for _, rows in found)
        return [of_file for of_file, _ in found], pa.concat_tables(
            [pa.schema(self.files.fields).empty_table(), *versions]
        )

    def _apply_rules(
        self,
        rules: Sequence[Superseded],
        fills: Sequence[Fill],
        found: dict[str, DeletesOf],
        left: list[pa.Table],
        done: Replacement,
    ) -> None:
        """Remove rows that changes do not have the keys of, and fill columns of those that stay.

        Args:
            rules: of the rows to remove, in order.
            fills: in order.
            found: by file, rows that changes touch; gets those that are removed or written again.
            left: rows that are still to be written; gets what stays of removed ones, and filled ones. Many are written.
            done: gets the files of these.
        """
        none, mode = np.zeros(0, np.int64), self.lake.mode
        for file in self.files.planned(self._all()):
            with self.files.stream(file) as stream:
                stored, own, shared = self.files.stored(file, stream)
                of_file = found.get(file.location) or DeletesOf(file, own, shared, none, none)
                replaced = [of_file.positions]
                for positions in stored.others(of_file.positions):
                    removed, marked = none, None
                    if rules:
                        free = np.setdiff1d(positions, of_file.settled, assume_unique=True)
                        removed, marked = stored.removed(free, rules, mode)
                    again, rows = none, None
                    if fills:
                        rest = np.setdiff1d(positions, removed, assume_unique=True)
                        again, rows = stored.to_fill(rest, fills, mode)
                    replaced += [removed, again]
                    left += [self._recomputed(filled(each, fills), fills) for each in (marked, rows) if each]
                    if sum(each.nbytes for each in left) > PART_BYTES:
                        self._write(left, done)
                        left.clear()
            found[file.location] = replace(of_file, positions=np.unique(np.concatenate(replaced)))

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
        for column, low in lowest_values(self.lake.layout, self.lake.columns).items():
            least = pc.min(rows.column(column)).as_py()
            if least is not None and least < Decimal(low):
                raise NeedsSpark("a partition cannot hold a value")
        if not {one.column for one in self.lake.layout.sort_by} <= {*rows.column_names}:
            raise NeedsSpark("a column of the sort order has another name")
        self.files.write(rows, done)

    def _count(self, files: Sequence[OldFile], keys: pa.Table, known: int) -> None:
        """Count the rows of the keys in another way.

        Raises:
            MergeError: they are others than those that were found.
        """
        found = 0
        for file in files:
            with self.files.stream(file) as stream:
                stored, _, _ = self.files.stored(file, stream)
                found += len(np.setdiff1d(joined_positions(stream, self.key, keys), stored.dead))
        if found != known:
            raise wrong_rows(
                self.of,
                f"found {counted(known, 'row')} of {counted(keys.num_rows, 'changed key')}, and there are {found}",
            )

    def _keys(self, last: pa.Table) -> pa.Table:
        """Return the keys of changes.

        Raises:
            NeedsSpark: a row has no key.
        """
        keys = last.select(self.lake.primary_key).combine_chunks()
        if any(one.null_count for one in keys.columns):
            raise NeedsSpark("a row has no key")
        return keys

    def _all(self) -> Any:
        return self.files.expression("alwaysTrue")

    def _bounds(self, keys: pa.Table) -> Any:
        """Return the condition that a file of the keys fulfils: Iceberg compares the bounds of the first column."""
        first, name = keys.column(0), self.lake.primary_key[0]
        is_number = pa.types.is_integer(first.type)
        # Python has no dates of the year 0.
        least, most = pc.min_max(first).as_py().values() if is_number else (None, None)
        # A point in a name would be read as a path.
        if "." in name or not is_number or not prunes(self.lake, name, str(least)):
            return self._all()
        within = (("greaterThanOrEqual", least), ("lessThanOrEqual", most))
        return self.files.expression("and", *(self.files.expression(one, name, value) for one, value in within))
