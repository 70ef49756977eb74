"""Applies few changes to an Iceberg table without Spark SQL: rows are found, made and written in Arrow; nothing is committed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cdc_lib.apply.complete import completed
from cdc_lib.apply.data_files import joined_positions, positions_of
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.key_rows import AskedKeys, Rows
from cdc_lib.apply.old_rows import KeysOfChanges
from cdc_lib.apply.removals import with_mode
from cdc_lib.apply.rows import last_changes, order_of
from cdc_lib.apply.versions import EarliestChange, spliced
from cdc_lib.lake.layout import lowest_values
from cdc_lib.merge.collapse import DELETE, INSERT
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeTable
from cdc_lib.model.manifest import OP
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import IS_CURRENT, VALID_TO
from spark_jobs.changes.in_spark import with_computed_here
from spark_jobs.iceberg.branches import wrong_rows
from spark_jobs.iceberg.deleted_rows import OldFile
from spark_jobs.iceberg.key_check import COUNTED_KEYS
from spark_jobs.iceberg.row_delta import Replacement
from spark_jobs.iceberg.row_files import DeletesOf, RowFiles
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.iceberg.truncated import prunes


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
        return self.files.named(self.lake.primary_key)

    def append(self, rows: pa.Table, rules: Sequence[Superseded]) -> Replacement:
        """Write all rows, and remove those of some rules."""
        done = Replacement(rows.num_rows)
        if rules:
            self._remove(rules, done, [])
        return self._with_rows(done, rows)

    def replace(self, changes: pa.Table, rules: Sequence[Superseded], *, guard: bool) -> Replacement:
        """Write the last change of each key.

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
        keys = self._keys(last)
        asked = KeysOfChanges.of(self.key, keys, changes, order_of(last) if guard else None)
        done, marked = Replacement(last.num_rows), list[pa.Table]()
        if last.num_rows or rules:
            files = [*self.files.planned(self._bounds(keys) if not rules else self._all())]
            of_keys, removed = self._delete(files, asked, rules, marked, done)
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
            old = pa.concat_tables([pa.schema(self.files.fields).empty_table(), *asked.old])
            last = last_changes(completed(changes, old, key, keeps_deleted=keeps_deleted), key, begins=False)
        rows = with_mode(last, self.lake.mode, rules)
        left = ~asked.outdated if keeps_deleted else ~asked.outdated & pc.not_equal(last.column(OP), DELETE).to_numpy()
        return self._with_rows(done, rows.filter(pa.array(left)), marked)

    def splice(
        self, changes: pa.Table, rules: Sequence[Superseded], unfinished: Sequence[int], *, guard: bool
    ) -> Replacement:
        """Write all changes as versions.

        Args:
            changes: complete.
            rules: positions at which rows end without a change, in order.
            unfinished: see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`.
            guard: whether the table may have changes that are newer than some of these.

        Raises:
            NeedsSpark: a file of the table is one that only Spark reads, or a row has no key.
        """
        done, ended = Replacement(changes.num_rows), list[pa.Table]()
        if not changes.num_rows:
            if rules:
                self._remove(rules, done, ended)
            return self._with_rows(done, changes, ended)
        first, keys = EarliestChange.of(changes), self._keys(last_changes(changes, self.lake.primary_key, begins=False))
        found, existing = self._versions(keys, first, rules, ended, guard=guard)
        of_mode = {*self.lake.primary_key, *MODE_COLUMNS["scd2"]}
        computed = {name.lower() for name in self.lake.computed}
        own = [one.name for one in self.files.fields if one.name not in of_mode and one.name.lower() not in computed]
        new, stays = spliced(changes, existing, self.lake.primary_key, own, rules, unfinished)
        deletes, start = list[DeletesOf](), 0
        for of_file, touched in found:
            replaced = touched[~stays[start : start + len(touched)]]
            start += len(touched)
            positions = np.union1d(of_file.positions, replaced)
            deletes += [replace(of_file, positions=positions)] if len(positions) else []
        self.files.delete(deletes, done)
        return self._with_rows(done, new, ended)

    def _versions(
        self, keys: pa.Table, first: EarliestChange, rules: Sequence[Superseded], ended: list[pa.Table], *, guard: bool
    ) -> tuple[list[tuple[DeletesOf, Rows]], pa.Table]:
        """Return the versions that changes may touch, and by file their positions and what rules remove of others.

        Args:
            keys: of the changes.
            first: of the changes.
            rules: as in :meth:`splice`.
            ended: gets the versions of other keys that rules end.
            guard: as in :meth:`splice`.
        """
        asked = AskedKeys([one.combine_chunks() for one in keys.columns])
        found, versions = list[tuple[DeletesOf, Rows]](), [pa.schema(self.files.fields).empty_table()]
        condition = self._bounds(keys) if not rules else self._all()
        if first.at is not None and not guard:
            since = self.files.expression("greaterThanOrEqual", VALID_TO, first.at.isoformat())
            usable = self.files.expression("or", self.files.expression("equal", IS_CURRENT, True), since)
            condition = self.files.expression("and", condition, usable)
        for file in self.files.planned(condition):
            with self.files.stream(file) as stream:
                of_keys, _ = positions_of(stream, self.key, asked)
                if not len(of_keys) and not rules:
                    continue
                stored, own, shared = self.files.stored(file, stream)
                live = np.setdiff1d(of_keys, stored.dead, assume_unique=True)
                rows = stored.at(live)
                touched = first.may_touch(rows, guard=guard)
                versions.append(rows.filter(pa.array(touched)))
                removed = np.zeros(0, np.int64)
                if rules:
                    removed, left = stored.removed(stored.others(of_keys), rules, self.lake.mode)
                    ended += [left] if left is not None else []
            found.append((DeletesOf(file, own, shared, removed), live[touched]))
        return found, pa.concat_tables(versions)

    def _delete(
        self,
        files: Sequence[OldFile],
        asked: KeysOfChanges,
        rules: Sequence[Superseded],
        marked: list[pa.Table],
        done: Replacement,
    ) -> tuple[int, int]:
        """Delete the rows of the keys, without those that are newer than their changes, and those that rules remove or mark.

        Returns:
            The number of rows of the keys, and how many of them a rule removes as well.
        """
        deletes, of_keys, removed = list[DeletesOf](), 0, 0
        for file in files:
            with self.files.stream(file) as stream:
                positions, numbers = asked.positions(stream)
                if not len(positions) and not rules:
                    continue
                stored, own, shared = self.files.stored(file, stream)
                positions = asked.replaced(stored, positions, numbers)
                of_keys += len(positions)
                if rules:
                    is_mirror = self.lake.mode == "mirror"
                    removed += len(stored.removed(positions, rules, "mirror")[0]) if is_mirror else 0
                    others, left = stored.removed(stored.others(positions), rules, self.lake.mode)
                    marked += [left] if left is not None else []
                    positions = np.union1d(positions, others)
            if len(positions):
                deletes.append(DeletesOf(file, own, shared, positions))
        self.files.delete(deletes, done)
        return of_keys, removed

    def _remove(self, rules: Sequence[Superseded], done: Replacement, left: list[pa.Table]) -> None:
        """Remove the rows of rules; ``left`` gets what stays of them."""
        deletes = list[DeletesOf]()
        for file in self.files.planned(self._all()):
            with self.files.stream(file) as stream:
                stored, own, shared = self.files.stored(file, stream)
                positions, rows = stored.removed(stored.others(np.zeros(0, np.int64)), rules, self.lake.mode)
            left += [rows] if rows is not None else []
            deletes += [DeletesOf(file, own, shared, positions)] if len(positions) else []
        self.files.delete(deletes, done)

    def _with_rows(self, done: Replacement, rows: pa.Table, others: Sequence[pa.Table] = ()) -> Replacement:
        """Write rows of changes, and other ones that are complete."""
        rows = with_computed_here(self.session, rows, self.lake).select([one.name for one in self.files.fields])
        rows = pa.concat_tables([rows, *others])
        done.rows = rows.num_rows
        if not rows.num_rows:
            return done
        for column, low in lowest_values(self.lake.layout, self.lake.columns).items():
            least = pc.min(rows.column(column)).as_py()
            if least is not None and least < Decimal(low):
                raise NeedsSpark("a partition cannot hold a value")
        if not {one.column for one in self.lake.layout.sort_by} <= {*rows.column_names}:
            raise NeedsSpark("a column of the sort order has another name")
        self.files.write(rows, done)
        return done

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
