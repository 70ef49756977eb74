"""What a part of the changes makes of a lake table's rows: new rows, and positions of rows that they replace. Nothing is written here.

The rule of each mode is here once, for this process and for tasks on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.complete import completed, refuse_absent, refuse_missing, refuse_partial_keys
from cdc_lib.apply.data_files import joined_positions, named, positions_of
from cdc_lib.apply.fills import Fill, filled
from cdc_lib.apply.key_rows import AskedKeys, Rows
from cdc_lib.apply.old_rows import KeysOfChanges
from cdc_lib.apply.removals import with_mode
from cdc_lib.apply.rows import last_changes, order_of
from cdc_lib.apply.stored_files import DeadRows, OpenFiles, StoredFile
from cdc_lib.apply.versions import EarliestChange, spliced, without_rewritten
from cdc_lib.errors import MergeError
from cdc_lib.lake.layout import lowest_values
from cdc_lib.merge.collapse import DELETE, INSERT, MISSING
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeTable
from cdc_lib.model.manifest import ABSENT, OP
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import Erased, Superseded
from cdc_lib.model.table_mode import IS_CURRENT, ONE_VERSION_MODES
from cdc_lib.ports import RereadRows

T = TypeVar("T")

COUNTED_KEYS = 2_000_000
"""Most keys whose rows are counted in another way, where it is not certain how many rows had to be found."""


class Touched(Protocol):
    """Rows of a data file that changes touch, as :class:`DeletesOf` has them."""

    @property
    def settled(self) -> Rows:
        """Positions of rows on which changes decide."""

    @property
    def positions(self) -> Rows:
        """Positions of live rows that are deleted."""


@dataclass(frozen=True, slots=True)
class DeletesOf:
    """Rows of a data file that a merge deletes.

    Args:
        file: the file.
        dead: its rows that are deleted already.
        settled: of rows on which changes decide, ascending: no rule does.
        positions: of live rows that are deleted, ascending.
    """

    file: StoredFile
    dead: DeadRows
    settled: Rows
    positions: Rows


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """What limits the files that a part reads.

    Args:
        least: smallest value of the first key column; None if files are not chosen by it.
        most: greatest one, likewise.
        since: scd2: versions that ended earlier are not touched; None if all may be.
    """

    least: int | None = None
    most: int | None = None
    since: datetime | None = None


FilesOf = Callable[[KeyBounds], Iterable[StoredFile]]
"""Returns the files of the table that may have rows within bounds."""


@dataclass(frozen=True, slots=True)
class PartResult:
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
class TablePart:
    """Applies parts of the changes to one table as it was loaded.

    Args:
        lake: the table as this project knows it.
        of: the source table, for messages.
        open: opens its files.
        rules: positions at which rows end without a change of their own, in order, and ranges of which all changes are applied again.
        fills: values of added columns.
        unfinished: see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`.
        guard: whether the table may have newer rows, which stay.
        rekeyed: whether another key was in force, so that several rows may have one key.
        reselect: reads rows from the source; None if none are read.
        to_come: whether a snapshot will bring the rows that stay incomplete.
        erases: rows that are erased.
    """

    lake: LakeTable
    of: str
    open: OpenFiles
    rules: Sequence[Superseded] = ()
    fills: Sequence[Fill] = ()
    unfinished: Sequence[int] = ()
    guard: bool = False
    rekeyed: bool = False
    reselect: RereadRows | None = None
    to_come: bool = False
    erases: Sequence[Erased] = ()

    @property
    def looks_at_all(self) -> bool:
        """Whether rows change that changes do not have the keys of."""
        return bool(self.cuts or self.fills or self.erases)

    @property
    def cuts(self) -> Sequence[Superseded]:
        """The rules for rows whose keys the changes may not have: versions of a range are made again from its changes alone."""
        return [one for one in self.rules if one.since is None] if self.lake.mode == "scd2" else self.rules

    @property
    def key(self) -> tuple[pa.Field, ...]:
        """The fields of the key's columns."""
        return named(self.open.fields, self.lake.primary_key)

    def result(self, changes: pa.Table, files_of: FilesOf) -> PartResult:
        """Apply a part.

        Args:
            changes: all of its keys, with ``_absent``.
            files_of: finds the table's files.

        Raises:
            MergeError: not all rows of the keys were found, a change has no key, or a row is incomplete.
        """
        if self.lake.mode == "append":
            refuse_absent(changes, self.of, has_key=bool(self.lake.primary_key))
        else:
            refuse_partial_keys(changes, self.lake.primary_key, self.of)
        if self.lake.mode in ONE_VERSION_MODES:
            return self._replaced(changes, files_of)
        if self.lake.mode == "append" or not changes.num_rows:
            return PartResult(changes.num_rows, changes.drop_columns([ABSENT]), ())
        part = self._spliced(changes, files_of)
        return replace(part, rows=filled(part.rows, self.fills))

    def _replaced(self, changes: pa.Table, files_of: FilesOf) -> PartResult:
        """Return the last change of each key, and the rows that it replaces."""
        key, keeps_deleted = self.lake.primary_key, self.lake.mode == "soft_delete"
        if self.reselect is not None:
            changes = self.reselect.added_to(changes, key)
        last = last_changes(changes, key, begins=False)
        keys, order = self._keys(last), order_of(last) if self.guard else None
        asked = KeysOfChanges.of(self.key, keys, changes, order, keeps_deleted=keeps_deleted)
        touched: Sequence[DeletesOf] = ()
        if last.num_rows:
            files = [*files_of(self._bounds(keys))]
            touched, removed = self._deletes(files, asked)
            of_keys = sum(len(one.positions) for one in touched)
            # How many rows had to be found is certain if they are those of all keys, or of all that were not inserted.
            inserts = pc.sum(pc.equal(last.column(OP), INSERT)).as_py() or 0
            found = of_keys + int(asked.newer.sum())
            if found not in (last.num_rows, last.num_rows - inserts) and last.num_rows <= COUNTED_KEYS:
                self._count(files, keys, found)
            # A snapshot that replaces all rows also replaces those that another writer made twice.
            if of_keys - removed > last.num_rows and not self.rekeyed:
                raise wrong_rows(
                    self.of, f"{counted(of_keys - removed, 'row')} of {counted(last.num_rows, 'changed key')}"
                )
        if asked.lacking.any():
            last = self._completed(changes, asked)
        rows, newest = with_mode(last, self.lake.mode, self.rules), asked.newer == 0
        left = newest if keeps_deleted else newest & pc.not_equal(last.column(OP), DELETE).to_numpy()
        return PartResult(last.num_rows, rows.filter(pa.array(left)), touched)

    def _completed(self, changes: pa.Table, asked: KeysOfChanges) -> pa.Table:
        """Return the last change of each key with all cells, unless the table has a newer row.

        Raises:
            MergeError: a row is incomplete.
        """
        key, is_due = self.lake.primary_key, pa.array(asked.newer == 0)
        old = filled(pa.concat_tables([pa.schema(self.open.fields).empty_table(), *asked.old]), self.fills)
        rows = completed(changes, old, key, self.lake.mode, self.rules, to_come=self.to_come)
        last, why = last_changes(rows, key, begins=False), ""
        lacking = last.filter(pc.and_(pc.not_equal(last.column(MISSING), ""), is_due))
        if lacking.num_rows and self.reselect is not None:
            read, why = self.reselect.instead_of(lacking.drop_columns([MISSING]), key)
            read = read.append_column(MISSING, pa.repeat("", read.num_rows))
            last = last_changes(pa.concat_tables([rows, read]), key, begins=False)
        refuse_missing(last.filter(is_due), key, self.of, why)
        return last.drop_columns([MISSING])

    def _of_files(self, files: Sequence[StoredFile], find: Callable[[StoredFile], T | None]) -> list[T]:
        """Return what is found in files, in their order."""
        at_once = self.open.store.at_once(file.location for file in files)
        if at_once == 1 or len(files) < 2:
            return [found for file in files if (found := find(file)) is not None]
        with ThreadPoolExecutor(at_once) as threads:
            return [found for found in threads.map(find, files) if found is not None]

    def _deletes(self, files: Sequence[StoredFile], asked: KeysOfChanges) -> tuple[list[DeletesOf], int]:
        """Find the rows of the keys, and which of them are not newer than their changes; also returns how many of these a rule removes."""

        def find(file: StoredFile) -> tuple[DeletesOf, int] | None:
            with self.open.stream(file) as stream:
                positions, numbers = asked.positions(stream)
                if not len(positions):
                    return None
                stored, dead = self.open.stored(file, stream)
                positions = asked.replaced(stored, positions, numbers)
                counts = bool(self.rules) and self.lake.mode == "mirror"
                removed = len(stored.removed(positions, self.rules, "mirror")[0]) if counts else 0
            # A rule may remove a row that is newer than its change.
            return DeletesOf(file, dead, positions, positions), removed

        found = self._of_files(files, find)
        return [of_file for of_file, _ in found], sum(removed for _, removed in found)

    def _spliced(self, changes: pa.Table, files_of: FilesOf) -> PartResult:
        """Return the versions that changes make, and those that they replace.

        Args:
            changes: with ``_absent``, at least one.
            files_of: finds the table's files.

        Raises:
            MergeError: a change is incomplete.
        """
        first = EarliestChange.of(changes, self.rules)
        keys = self._keys(last_changes(changes, self.lake.primary_key, begins=False))
        inserts = pc.sum(pc.equal(changes.column(OP), INSERT)).as_py()
        found, existing = self._versions(keys, first, files_of, inserts)
        if changes.column(ABSENT).null_count < changes.num_rows:
            key, old = self.lake.primary_key, filled(without_rewritten(existing, self.rules), self.fills)
            changes = completed(changes, old, key, self.lake.mode, self.rules, to_come=self.to_come)
            refuse_missing(changes, key, self.of, "every version is kept as it was (mode scd2)")
        of_mode = {*self.lake.primary_key, *MODE_COLUMNS["scd2"]}
        computed = {name.lower() for name in self.lake.computed}
        own = [one.name for one in self.open.fields if one.name not in of_mode and one.name.lower() not in computed]
        new, stays = spliced(changes, existing, self.lake.primary_key, own, self.rules, self.unfinished)
        touched, start = list[DeletesOf](), 0
        for of_file in found:
            stop = start + len(of_file.positions)
            touched.append(replace(of_file, positions=of_file.positions[~stays[start:stop]]))
            start = stop
        return PartResult(changes.num_rows, new, touched)

    def _versions(
        self, keys: pa.Table, first: EarliestChange, files_of: FilesOf, inserts: int
    ) -> tuple[list[DeletesOf], pa.Table]:
        """Return by file the positions of the versions that changes may touch, and these versions.

        Args:
            keys: of the changes.
            first: of the changes.
            files_of: finds the table's files.
            inserts: number of changes that inserted a row: more keys than these have a version, or did once.

        Raises:
            MergeError: not all versions of the keys were found.
        """
        asked, bounds = AskedKeys([one.combine_chunks() for one in keys.columns]), self._bounds(keys)
        # Rules end versions of other keys, so that all versions of these keys have to be found.
        if not self.guard and not self.cuts:
            bounds = replace(bounds, since=first.at)

        def find(file: StoredFile) -> tuple[DeletesOf, pa.Table, int] | None:
            with self.open.stream(file) as stream:
                of_keys, _ = positions_of(stream, self.key, asked)
                if not len(of_keys):
                    return None
                stored, dead = self.open.stored(file, stream)
                live = np.setdiff1d(of_keys, stored.dead, assume_unique=True)
                rows = stored.at(live)
            touched = first.may_touch(rows, guard=self.guard)
            return DeletesOf(file, dead, of_keys, live[touched]), rows.filter(pa.array(touched)), len(live)

        files = [*files_of(bounds)]
        found = self._of_files(files, find)
        versions = pa.concat_tables([pa.schema(self.open.fields).empty_table(), *(rows for _, rows, _ in found)])
        current = pc.sum(versions.column(IS_CURRENT)).as_py() or 0
        if keys.num_rows - current > inserts and keys.num_rows <= COUNTED_KEYS:
            self._count(files, keys, sum(number for _, _, number in found))
        return [of_file for of_file, _, _ in found], versions

    def with_others(
        self, file: StoredFile, touched: Touched | None, write: Callable[[list[pa.Table]], None]
    ) -> DeletesOf:
        """Return the rows of a file that changes touch, and those that rules remove or that are filled.

        Args:
            file: the file.
            touched: the rows that changes touch; None if they touch none.
            write: gets what stays of removed rows, and filled ones; called often.
        """
        none, mode = np.zeros(0, np.int64), self.lake.mode
        with self.open.stream(file) as stream:
            stored, dead = self.open.stored(file, stream)
            known = (none, none) if touched is None else (touched.settled, touched.positions)
            of_file = DeletesOf(file, dead, *known)
            replaced = [of_file.positions]
            for others in stored.others(of_file.positions):
                erased = stored.erased(others, self.erases) if self.erases else none
                positions = np.setdiff1d(others, erased, assume_unique=True)
                removed, marked = none, None
                if self.cuts:
                    free = np.setdiff1d(positions, of_file.settled, assume_unique=True)
                    removed, marked = stored.removed(free, self.cuts, mode)
                again, rows = none, None
                if self.fills:
                    rest = np.setdiff1d(positions, removed, assume_unique=True)
                    again, rows = stored.to_fill(rest, self.fills, mode)
                replaced += [erased, removed, again]
                write([filled(table, self.fills) for table in (marked, rows) if table])
        return replace(of_file, positions=np.unique(np.concatenate(replaced)))

    def _count(self, files: Sequence[StoredFile], keys: pa.Table, known: int) -> None:
        """Count the rows of the keys in another way.

        Raises:
            MergeError: they are others than those that were found.
        """
        found = 0
        for file in files:
            with self.open.stream(file) as stream:
                stored, _ = self.open.stored(file, stream)
                found += len(np.setdiff1d(joined_positions(stream, self.key, keys), stored.dead))
        if found != known:
            raise wrong_rows(
                self.of,
                f"found {counted(known, 'row')} of {counted(keys.num_rows, 'changed key')}, and there are {found}",
            )

    def _keys(self, last: pa.Table) -> pa.Table:
        """Return the keys of changes.

        Raises:
            MergeError: a change has no key.
        """
        keys = last.select(self.lake.primary_key).combine_chunks()
        for name, column in zip(keys.column_names, keys.columns, strict=True):
            if column.null_count:
                raise MergeError(
                    f"a change has no value of column {name}, which is in the key",
                    hint="Take a new snapshot: cdc snapshot {source} {table}",
                    table=self.of,
                )
        return keys

    def _bounds(self, keys: pa.Table) -> KeyBounds:
        """Return the bounds of the first key column, if files may be chosen by it."""
        first = keys.column(0)
        # Python has no dates of the year 0.
        is_number = pa.types.is_integer(first.type) and len(first)
        return bounds_of(self.lake, self.key[0], *pc.min_max(first).as_py().values()) if is_number else KeyBounds()


def bounds_of(lake: LakeTable, first: pa.Field, least: int | None, most: int | None) -> KeyBounds:
    """Return bounds of the first key column of a table, if files may be chosen by it; None for an end without a bound."""
    lowest = lowest_values(lake.layout, lake.columns).get(first.name)
    is_cut_off = lowest is not None and (least is None or Decimal(least) < Decimal(lowest))
    # A point in a name would be read as a path.
    if not pa.types.is_integer(first.type) or "." in first.name or is_cut_off:
        return KeyBounds()
    return KeyBounds(least, most)


def wrong_rows(table: str, what: str) -> MergeError:
    """Return the error of a table whose number of rows is not the one that the merge computed."""
    return MergeError(
        f"the number of rows of the lake table does not add up: {what}",
        hint=f"Nothing was published. Look for wrong rows: cdc verify {{source}} {table}. "
        f"Take a new snapshot: cdc snapshot {{source}} {table}",
        table=table,
    )
