"""The rows of a lake table in Apache Iceberg: by default merge-on-read with deletion vectors.

An upsert is two steps (`./dev bench lake merges` compares them with one MERGE INTO): a DELETE of the changed keys, and an append
of the new rows. Few keys are named in the DELETE, many are broadcast to it. Where the table may have newer rows, or where files are
written again, a MERGE that only deletes compares the broadcast key and order columns. The DELETE goes to a branch, and the new rows
to data files without a commit, at the same time if they are many. One commit publishes both. It is refused if another commit came
first, also after an append: another merge of the same batches, perhaps an abandoned one that still runs, may have made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.table_part import COUNTED_KEYS, wrong_rows
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import MergeConflict
from cdc_lib.merge.collapse import DELETE, RANK, last_change_sql
from cdc_lib.model.lake_table import (
    ORDER,
    LakeTable,
    Marker,
    Reselected,
    marker_property,
)
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT, BINLOG, EPOCH, OFFSET, OP
from cdc_lib.model.publication import publication
from cdc_lib.model.table_commit import Changes, Filled, Superseded, TableCommit
from cdc_lib.model.table_mode import IS_CURRENT, RESET
from cdc_lib.ports import FilesForTasks, ReadRows, Replaced, RereadRows, Reselect
from spark_jobs.changes.added_defaults import filled_columns, update_sql
from spark_jobs.changes.computed import recompute_sql, written_rows
from spark_jobs.errors import is_overtaken, said, translate_errors
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.iceberg.beginning import Beginning, publish_beginning, redefined
from spark_jobs.iceberg.branches import (
    PREFIX,
    PUBLISH_ATTEMPTS,
    STATEMENT_PROPERTY,
    Branch,
    drop,
    drop_left_over,
    new_branch,
    open_branch,
    publish,
    refuse_moved,
    refuse_moved_main,
    start_branch,
)
from spark_jobs.iceberg.completion import Completion, refuse_absent
from spark_jobs.iceberg.data_files import write_files
from spark_jobs.iceberg.key_check import counts_sql, fault, settled
from spark_jobs.iceberg.key_filter import KeyRange, key_range, same_key
from spark_jobs.iceberg.loading import metadata_of
from spark_jobs.iceberg.renames import refuse_other_names, refuse_renamed
from spark_jobs.iceberg.row_delta import FEWER_ROWS, SAME_ROWS, Replacement, Rows, rows_of
from spark_jobs.iceberg.scd2 import cut_sql, cuts_of, ended_before, spliced
from spark_jobs.iceberg.soft_delete import mark_sql, marked
from spark_jobs.iceberg.table_definition import DefinedTable, Read
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.iceberg.temp_views import view_of
from spark_jobs.iceberg.truncated import with_values_checked
from spark_jobs.iceberg.upkeep import tidy
from spark_jobs.runtime.java_classes import java_classes
from spark_jobs.runtime.session import activate, set_for
from spark_jobs.sql import belongs, full_name, point, struct

log = logging.getLogger(__name__)

BESIDE_ROWS = 20_000
"""Fewest rows that are written while the rows that they replace are deleted: fewer would not save the cost of a thread."""

ROWS_PER_FILE = 250_000
"""Most rows of an append that become one file, sorted by key."""

PLAIN_CACHE = {"spark.sql.inMemoryColumnarStorage.compressed": "false"}
PLAIN_CACHE_ROWS = 500_000
"""Most changes that are cached uncompressed: to compress them costs more than to read the batch, and they are read only a few times."""

LAKE_ALIAS = "cdc_lake"
"""Name of the lake table in a statement with a subquery."""

SUMMARY_OPTION = "snapshot-property."
"""Prefix of options and settings of a write that add properties to the summary of its commit."""

SOURCE_VIEW, LAST_VIEW, NEWER_VIEW, LEFT_VIEW = "cdc_changes", "cdc_last", "cdc_newer", "cdc_left"


class IcebergTable(DefinedTable):
    """One Iceberg table and its rows; implements :class:`cdc_lib.ports.MergeTarget`."""

    _marks: Mapping[str, str] = MappingProxyType({})  # properties of the published snapshot
    _merge_id = ""

    def upsert(
        self, changes: Changes[DataFrame], commit: TableCommit, reselect: Reselect[DataFrame] | None = None
    ) -> int:
        """Apply the last change of each key, or all changes in scd2 mode; returns their number."""
        table, most = self._as_read(), changes.at_most
        if table.mode == "scd2":
            return self._splice(table, self._whole(table, changes, commit), commit, guard=changes.guard)
        lacking = ABSENT in changes.rows.columns
        with translate_errors("merge", self._table):
            reads_whole = reselect is not None and reselect.reads_whole()
            if table.empty and most > ROWS_PER_FILE and not lacking and not reads_whole:
                return self._load_first(table, changes, commit)
            keeps_deleted = table.mode == "soft_delete"
            resets = () if keeps_deleted else tuple(_superseded(table, rule, "t") for rule in commit.supersedes)
            completion = Completion(
                self._session, table, full_name(self._name), self._table, resets, commit.fills, keeps_deleted
            )
            last = self._last(table, changes, completion)
            # Spark plans no copy-on-write MERGE whose source reads the table that it writes.
            last = last.localCheckpoint() if table.copies_on_write else self._cached(last, most)
            try:
                # It is computed from the cached frame, and re-selected rows are in files.
                replaced = reselect(last, table) if reselect is not None else Replaced(last, {})
                if lacking:
                    completion.check(replaced.last, replaced.why)
                if replaced.columns is not None:
                    table = replace(table, columns=replaced.columns)
                markers = {name: _reached(m, replaced.reached.get(name)) for name, m in commit.markers.items()}
                self._mark(table, replace(commit, markers=markers))
                replaced.last.createOrReplaceTempView(self._view(LAST_VIEW))
                keys = key_range(self._session, self._view(LAST_VIEW), table)
                self._write(table, replaced.last, keys, commit, guard=changes.guard)
                return keys.rows
            finally:
                last.unpersist()

    def replace(
        self,
        read: ReadRows,
        commit: TableCommit,
        reselect: RereadRows | None = None,
        *,
        guard: bool,
        to_come: bool = False,
        spread: FilesForTasks | None = None,
    ) -> int | None:
        """Apply changes in Arrow; returns their number, None if Spark has to do it."""
        with translate_errors("merge", self._table):
            loaded = self._as_loaded()
            table = self._unmoved(loaded.state)
            if any(name.startswith(PREFIX) for name in loaded.metadata.heads):
                drop_left_over(loaded.java)
            if self._beginning is not None:
                return self._begin_rows(
                    self._beginning, read, commit, reselect, guard=guard, to_come=to_come, spread=spread
                )
            java, metadata = loaded.java, loaded.metadata
            done = self._replacement(
                java, metadata, table, read, commit, reselect, guard=guard, to_come=to_come, spread=spread
            )
            if done is None:
                return None
            current = loaded.metadata.current
            rows_before = rows_of(current.summary) if current is not None else 0
            branch = Branch(new_branch(), table.snapshot_id, loaded.java, self._table, rows_before)
            branch.replace(done)
            self._mark(table, _reaching(commit, reselect))
            self._publish(table, branch)
            return done.changes

    def _replacement(
        self,
        java: Any,
        metadata: TableMetadata,
        table: LakeTable,
        read: ReadRows,
        commit: TableCommit,
        reselect: RereadRows | None,
        *,
        guard: bool,
        to_come: bool,
        spread: FilesForTasks | None,
    ) -> Replacement | None:
        """Return what changes make of a table; None if Spark has to do it."""
        try:
            rows = ArrowRows.of_table(
                self._session, java, metadata, table, self._table, reselect, rekeyed=self._rekeyed, to_come=to_come
            )
            tasks = spread(rows.files.fields) if spread is not None else ()
            return rows.apply(read(rows.files), commit, guard=guard, tasks=tasks)
        except NeedsSpark as why:
            log.info("%s: merged by Spark SQL: %s", self._name, why)
            return None

    def _begin_rows(
        self,
        to: Beginning,
        read: ReadRows,
        commit: TableCommit,
        reselect: RereadRows | None,
        *,
        guard: bool,
        to_come: bool,
        spread: FilesForTasks | None,
    ) -> int | None:
        """Publish the table's new definition with rows that are all it has then; returns the number of changes."""
        java = self._java()
        refuse_renamed(java, self._followed or (), self._table)
        change = redefined(self._session, java, to)
        metadata = metadata_of(self._session, change.table()).without_rows()
        done = self._replacement(
            change.table(), metadata, to.table, read, commit, reselect, guard=guard, to_come=to_come, spread=spread
        )
        if done is None:
            return None
        branch = Branch(new_branch(), to.table.snapshot_id, change.table(), self._table, 0)
        branch.replace(done)
        self._mark(to.table, _reaching(commit, reselect))
        now = publish_beginning(change, branch, self._marked(branch.rows), java_classes(self._session))
        self._beginning, self._read, self._followed, self._newest = None, Read(now), to.table.renames, None
        return done.changes

    def tidy(self, settings: MaintenanceConfig, named_by_cuts: Callable[[], Collection[int]], now: datetime) -> Tidied:
        """Do the maintenance that is due after a merge, usually nothing."""
        with translate_errors("tidy", str(self._name)):
            java, self._newest = self._as_loaded().java, None
            return tidy(self._session, self._name, java, settings, named_by_cuts, now)

    def _load_first(self, table: LakeTable, changes: Changes[DataFrame], commit: TableCommit) -> int:
        """Write many changes to an empty table; returns its number of rows.

        The changes are partitioned by key before they are collapsed: so they are shuffled and sorted only once, and not
        cached.
        """
        keys, keeps_deleted = [quoted(name) for name in table.primary_key], table.mode == "soft_delete"
        files = -(-changes.at_most // ROWS_PER_FILE)
        last = self._last_change(table, changes.rows.repartitionByRange(files, *keys))
        rows = marked(last, cuts_of(commit.supersedes)) if keeps_deleted else last.where(f"{quoted(OP)} <> '{DELETE}'")
        self._mark(table, commit)
        with self._branch(table) as branch:
            branch.add(self._write_sorted(table, rows, keys, branch, changes.at_most), Rows(0, changes.at_most))
        return self._loaded().records or 0

    def _cached(self, last: DataFrame, most: int) -> DataFrame:
        with set_for(self._session, PLAIN_CACHE if 0 < most <= PLAIN_CACHE_ROWS else {}):
            return last.persist()

    def _last(self, table: LakeTable, changes: Changes[DataFrame], completion: Completion) -> DataFrame:
        """Return the last change of each key, completed if changes lack cells."""
        if ABSENT in changes.rows.columns:
            return completion.last(changes.rows, snapshot_to_come=changes.snapshot_to_come)
        return self._last_change(table, changes.rows)

    def _last_change(self, table: LakeTable, changes: DataFrame) -> DataFrame:
        changes.createOrReplaceTempView(self._view(SOURCE_VIEW))
        return self._sql(last_change_sql(self._view(SOURCE_VIEW), table.primary_key, quoted)).drop(RANK)

    def _whole(self, table: LakeTable, changes: Changes[DataFrame], commit: TableCommit) -> DataFrame:
        """Complete all changes from earlier ones, and from the current versions at that time."""
        if ABSENT not in changes.rows.columns:
            return changes.rows
        with translate_errors("merge", self._table):
            ended = (ended_before(commit.supersedes),)
            completion = Completion(self._session, table, full_name(self._name), self._table, ended, commit.fills)
            completed = completion.every(changes.rows, snapshot_to_come=changes.snapshot_to_come)
            completion.check(completed, "every version is kept as it was (mode scd2)")
            return completed

    def _splice(self, table: LakeTable, changes: DataFrame, commit: TableCommit, *, guard: bool) -> int:
        """Write all changes as versions; returns the number of changes."""
        name, cuts, fills = full_name(self._name), cuts_of(commit.supersedes), commit.fills
        with translate_errors("merge", self._table):
            self._mark(table, commit)
            with (
                spliced(self._session, table, name, changes, commit, guard=guard) as splice,
                self._branch(table) as branch,
            ):
                lake = full_name(self._name, branch.name)
                if splice.deletes:
                    self._execute(
                        branch, f"MERGE INTO {lake}{splice.deletes}", Rows(-splice.replaced, -splice.replaced)
                    )
                for cut in () if table.empty else cuts:
                    self._execute(branch, cut_sql(lake, cut), SAME_ROWS)
                self._fill(table, fills, branch)
                new = splice.new.withColumns(filled_columns(fills, table.columns)) if fills else splice.new
                self._add(table, new, branch, splice.rows)
            return splice.changes

    def append(self, changes: DataFrame, commit: TableCommit) -> int:
        """Append every change as a row; returns their number."""
        table = self._as_read()
        with translate_errors("append", self._table):
            self._mark(table, commit)
            refuse_absent(changes, table, self._table)
            rows = changes.persist()
            try:
                count = rows.count()
                with self._branch(table) as branch:
                    for rule in () if table.empty else commit.supersedes:
                        self._delete(branch, _superseded(table, rule))
                    self._fill(table, commit.fills, branch)
                    self._add(table, rows, branch, count)
                return count
            finally:
                rows.unpersist()

    def _write(self, table: LakeTable, last: DataFrame, keys: KeyRange, commit: TableCommit, *, guard: bool) -> None:
        keeps_deleted = table.mode == "soft_delete"
        rows = last if keeps_deleted else last.where(f"{quoted(OP)} <> '{DELETE}'")
        replaces = keys.rows > 0 and not table.empty
        if guard and replaces:
            rows = self._without_outdated(table, rows, keys)
        cuts = cuts_of(commit.supersedes) if keeps_deleted else []
        new, count = (marked(rows, cuts), keys.rows) if keeps_deleted else (rows, keys.upserts)
        with self._branch(table) as branch, ThreadPoolExecutor(1) as thread:
            beside = replaces and count > BESIDE_ROWS
            writing = thread.submit(self._write_beside, table, new, count, branch) if beside else None
            try:
                deleted, emptied = self._replace(
                    table, keys if replaces else None, commit, branch, newest=not guard and count > 0
                )
            except Exception as error:
                if writing is not None and isinstance(another := writing.exception(), Exception):
                    error.add_note(f"New rows could not be written either: {said(another)}")
                raise
            files = writing.result() if writing is not None else self._new_files(table, new, count, branch)
            appended = branch.add(files, Rows(0 if guard and replaces else count, count))
            if replaces and not (appended == count and (emptied or settled(keys, deleted))):
                self._count_keys(table, keys, branch, count, appended, guard=guard)

    def _write_beside(self, table: LakeTable, new: DataFrame, count: int, branch: Branch) -> list[Any]:
        """Write new rows in a thread, while another one deletes the rows that they replace; either leaves cores idle."""
        activate(self._session)
        return self._new_files(table, new, count, branch)

    def _replace(
        self, table: LakeTable, keys: KeyRange | None, commit: TableCommit, branch: Branch, *, newest: bool
    ) -> tuple[int | None, bool]:
        """Delete or mark the rows that the merge replaces, and fill added columns of the others.

        Returns:
            The number of rows that were deleted because of their keys, None if unknown; and whether the table was empty then.
        """
        keeps_deleted = table.mode == "soft_delete"
        deleted: int | None = 0
        for rule in () if table.empty or keeps_deleted else commit.supersedes:
            self._delete(branch, _superseded(table, rule))
        if keys is not None:
            # If rows are appended, their commit has the marker: Iceberg's deletes of whole files have none.
            deleted = self._delete_keys(table, keys, branch, newest=newest)
        emptied = branch.rows == 0
        for cut in cuts_of(commit.supersedes) if keeps_deleted and not table.empty else ():
            self._execute(branch, mark_sql(full_name(self._name, branch.name), cut), SAME_ROWS)
        self._fill(table, commit.fills, branch)
        return deleted, emptied

    def _count_keys(
        self, table: LakeTable, keys: KeyRange, branch: Branch, count: int, appended: int, *, guard: bool
    ) -> None:
        """Count the rows of a merge's keys on its branch, which does not have the new ones yet.

        Raises:
            MergeError: a key has no row or two, or a row that should have been replaced.
        """
        if keys.rows > COUNTED_KEYS:
            return
        lake, one_each = full_name(self._name, branch.name), not (guard and self._rekeyed)
        found, old = self._sql(counts_sql(lake, table, keys)).collect()[0]
        if why := fault(keys, count, found + appended, old, one_each=one_each):
            # A newer row may be one that another commit wrote meanwhile: a conflict, not a wrong row.
            refuse_moved(self._java(), branch)
            raise wrong_rows(self._table, why)

    def _fill(self, table: LakeTable, fills: Sequence[Filled], branch: Branch) -> None:
        """Fill added columns of existing rows with their defaults."""
        for one in () if table.empty else fills:
            if (column := one.column_in(table.columns)) is not None:
                where = f"{quoted(OP)} <> '{RESET}'" if table.mode == "append" else ""
                lake = full_name(self._name, branch.name)
                self._execute(branch, update_sql(lake, one, column, where), SAME_ROWS)
                if again := recompute_sql(lake, table, one, where):
                    self._execute(branch, again, SAME_ROWS)

    def _delete_keys(self, table: LakeTable, keys: KeyRange, branch: Branch, *, newest: bool) -> int | None:
        """Delete the table's rows of these keys, unless they are newer; ``newest`` says that none is.

        Returns:
            Their number; None if unknown.
        """
        # A key has one row, unless the table was rekeyed.
        fewer = FEWER_ROWS if self._rekeyed else Rows(-keys.rows, 0)
        lake = full_name(self._name, branch.name)
        if newest and not table.copies_on_write:
            # The order columns of all rows would cost more to read than their keys and the join do.
            # In the subquery, a key column that is named as the table's alias would be meant instead of it.
            there = f"EXISTS (SELECT 1 FROM {keys.relation} AS s WHERE {same_key(table.primary_key, LAKE_ALIAS)})"
            delete = f"DELETE FROM {lake} AS {LAKE_ALIAS} WHERE {there}{keys.within(LAKE_ALIAS)}"
            return _removed(self._execute(branch, delete, fewer))
        merge = (
            f"MERGE INTO {lake} AS t USING {keys.relation} AS s"
            f" ON {same_key(table.primary_key)}{keys.within('t')}"
            f" WHEN MATCHED AND {struct(ORDER, 's')} >= {struct(ORDER, 't')} THEN DELETE"
        )
        return _removed(self._execute(branch, merge, fewer))

    def _delete(self, branch: Branch, where: str) -> None:
        self._execute(branch, f"DELETE FROM {full_name(self._name, branch.name)} WHERE {where}", FEWER_ROWS)

    def _execute(self, branch: Branch, statement: str, change: Rows) -> int | None:
        """Execute a statement on the branch, and check its snapshot; returns the number of added rows, None if unknown."""
        if branch.snapshot_id is None:
            start_branch(branch)
        self._sql(statement)
        return branch.follow(self._java(), change)

    def _without_outdated(self, table: LakeTable, rows: DataFrame, keys: KeyRange) -> DataFrame:
        """Return the rows without those that the table has in a newer version."""
        names = ", ".join(f"s.{quoted(name)}" for name in table.primary_key)
        newer = self._sql(
            f"SELECT {names} FROM {full_name(self._name)} AS t JOIN {keys.relation} AS s"
            f" ON {same_key(table.primary_key)}{keys.within('t')} WHERE {struct(ORDER, 't')} > {struct(ORDER, 's')}"
        )
        newer.createOrReplaceTempView(self._view(NEWER_VIEW))
        rows.createOrReplaceTempView(self._view(LEFT_VIEW))  # replacing SOURCE_VIEW would drop the cached frame
        condition = same_key(table.primary_key)
        return self._sql(
            f"SELECT s.* FROM {self._view(LEFT_VIEW)} AS s LEFT ANTI JOIN {self._view(NEWER_VIEW)} AS t ON {condition}"
        )

    def _add(self, table: LakeTable, rows: DataFrame, branch: Branch, count: int) -> None:
        """Write new rows, exactly so many."""
        branch.add(self._new_files(table, rows, count, branch), Rows(count, count))

    def _new_files(self, table: LakeTable, rows: DataFrame, count: int, branch: Branch) -> list[Any]:
        """Write new rows as files in key order, and return the files, Iceberg's Java objects.

        Args:
            table: the lake table.
            rows: the rows.
            count: number of rows at most; none are written if it is 0.
            branch: with which they are published.
        """
        if not count:
            return []
        partition = (IS_CURRENT,) if table.mode == "scd2" else ()
        order = [quoted(name) for name in (*partition, *(table.primary_key or ORDER))]
        files = -(-count // ROWS_PER_FILE)
        # Iceberg distributes many rows of another layout by its partitions and sort order.
        if files <= 1:
            rows = rows.coalesce(1)
        elif table.layout.in_key_order:
            rows = rows.repartitionByRange(files, *order)
        return self._write_sorted(table, rows, order, branch, count)

    def _write_sorted(
        self, table: LakeTable, rows: DataFrame, order: Sequence[str], branch: Branch, most: int
    ) -> list[Any]:
        """Write rows in their Spark partitions, each sorted; returns their files."""
        columns = with_values_checked(written_rows(rows, table), table)
        options = {f"{SUMMARY_OPTION}{STATEMENT_PROPERTY}": branch.name}
        if table.layout.in_key_order:
            columns = columns.sortWithinPartitions(*order)
        elif most > ROWS_PER_FILE:
            options["distribution-mode"] = "range"  # else each task writes a file of each partition
        try:
            return write_files(columns, branch.table, options, java_classes(self._session))
        except Py4JJavaError:
            refuse_moved_main(self._java(), branch)  # which explains an error of a write that was not staged
            raise

    @contextmanager
    def _branch(self, table: LakeTable) -> Iterator[Branch]:
        """Yield a branch that is published as the table's next snapshot if the block succeeds.

        It is created with its first statement. No other job uses it. If the block raises, the job removes it; that of a killed job is removed when it counts
        as left over.

        Raises:
            MergeConflict: the table changed since it was read.
        """
        java = self._java()
        drop_left_over(java)
        if self._beginning is not None:
            with self._begun(java, self._beginning) as branch:
                yield branch
            return
        branch = open_branch(java, new_branch(), table.snapshot_id, self._table)
        try:
            with set_for(self._session, {f"spark.sql.iceberg.{SUMMARY_OPTION}{STATEMENT_PROPERTY}": branch.name}):
                yield branch
            self._publish(table, branch)
        except Exception as error:
            self._abandon(branch, error)
            raise

    @contextmanager
    def _begun(self, java: Any, to: Beginning) -> Iterator[Branch]:
        """Yield a branch whose new rows are all that the table has after its next commit, which also gives it another definition.

        Raises:
            MergeConflict: the table changed since it was read.
        """
        refuse_renamed(java, self._followed or (), self._table)
        change = redefined(self._session, java, to)
        branch = Branch(new_branch(), to.table.snapshot_id, change.table(), self._table, 0)
        yield branch
        now = publish_beginning(change, branch, self._marked(branch.rows), java_classes(self._session))
        self._beginning, self._read, self._followed, self._newest = None, Read(now), to.table.renames, None

    def _abandon(self, branch: Branch, error: Exception) -> None:
        """Remove the branch of a failed job; if that fails too, the error gets a note."""
        if branch.snapshot_id is None:
            return
        try:
            drop(self._java(), [branch.name])
        except (Py4JJavaError, AnalysisException) as another:
            error.add_note(f"Its branch {branch.name} stays until it counts as left over: {said(another)}")

    def _publish(self, table: LakeTable, branch: Branch) -> None:
        """Publish; retried if other metadata of the table changed at the same time, such as another job's branch."""
        java = branch.table
        for attempts_left in reversed(range(PUBLISH_ATTEMPTS)):
            refuse_renamed(java, table.renames if self._followed is None else self._followed, self._table)
            try:
                now = publish(branch, java, self._marked, java_classes(self._session))
            except Py4JJavaError as error:
                if not attempts_left or not is_overtaken(error):
                    raise
                java = self._java()
            else:
                self._read, self._newest = Read(now), None
                return

    def _mark(self, table: LakeTable, commit: TableCommit) -> None:
        """Give the commit to come its markers, and those of other source tables again.

        No statement of the merge gets them: only what is published is marked.
        """
        of_tables = {
            marker_property(self._source, name, routed=self._tables[name]): marker.to_json()
            for name, marker in commit.markers.items()
        }
        self._marks, self._merge_id = {**table.carried, **of_tables}, commit.merge_id

    def _marked(self, rows: int | None) -> dict[str, str]:
        """Return the properties of the commit to come, after which the table has so many rows."""
        return {**self._marks, **publication(self._merge_id, rows)}

    def _view(self, name: str) -> str:
        return view_of(self._session, name)

    def _as_read(self) -> LakeTable:
        """Return the table, newly loaded, if it has not changed since this job read it first.

        Raises:
            MergeConflict: it has.
        """
        self._newest = None
        return self._unmoved(self._loaded())

    def _unmoved(self, table: LakeTable) -> LakeTable:
        if self._followed is not None and self._beginning is None:
            refuse_other_names(table.renames, self._followed, self._table)
        if self._read is not None and table.snapshot_id != self._read.snapshot:
            raise MergeConflict(
                "another commit came first",
                hint="Nothing was written. Run it again.",
                table=self._table,
                expected_snapshot=self._read.snapshot,
                found_snapshot=table.snapshot_id,
            )
        return table


def _removed(added: int | None) -> int | None:
    return None if added is None else -added


def _reaching(commit: TableCommit, reselect: RereadRows | None) -> TableCommit:
    """Return the commit with markers that say up to where re-selected rows are ahead."""
    markers = dict(commit.markers)
    for name, reached in () if reselect is None else reselect.reached:
        markers[name] = markers[name].with_reselected(reached)
    return replace(commit, markers=markers)


def _reached(marker: Marker, reached: Reselected | None) -> Marker:
    return marker if reached is None else marker.with_reselected(reached)


def _superseded(table: LakeTable, rule: Superseded, alias: str = "") -> str:
    """Return the condition of the rows to delete."""
    of = f"{alias}." if alias else ""
    older = [f"{struct((EPOCH, BINLOG, OFFSET), alias)} < {point(rule.before)}"]
    older += [] if rule.since is None else [f"{struct((EPOCH, BINLOG, OFFSET), alias)} >= {point(rule.since)}"]
    # Only append tables keep the operation that shows rows of snapshots.
    older += [f"{of}{quoted(OP)} <> 'r'"] if table.mode == "append" and not rule.reads else []
    return " AND ".join((*older, *belongs(rule.columns, alias)))
