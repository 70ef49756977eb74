"""One commit of a merge to a lake table: the changes of source tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_lib.apply.decide import files_of, is_few
from cdc_lib.apply.fills import Fill, filled
from cdc_lib.apply.range_deletes import RangeDeletes, with_range_deletes
from cdc_lib.apply.rows import LakeShape, change_files, changes_of
from cdc_lib.apply.tasks import ChangesTask
from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.lake.routing import LakeMerge, RoutedTable
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.renames import newest_schema
from cdc_lib.merge.row_rules import fills_of
from cdc_lib.model.lake_table import LakeColumn, LakeTable
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.model.table_mode import ONE_VERSION_MODES, Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import LakeRows, MergeChanges
from cdc_lib.reselect.policy import reads_all
from cdc_lib.reselect.result import Refused
from spark_jobs.changes.in_spark import fills_here, filtered_here
from spark_jobs.lake_format import LakeTarget
from spark_jobs.merging.job import MergeJob
from spark_jobs.merging.range_deletes import keys_in_range
from spark_jobs.merging.source_rows import ColumnsAdded, SourceRows
from spark_jobs.runtime.parallelism import is_local
from spark_jobs.runtime.storage_keys import keys_for_tasks

ROWS_BESIDE = 20_000
"""Most changes of a table that are applied in the memory of this process beside those of other tables."""

_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class RowsCommit:
    """The changes of source tables, and what is committed with them.

    Args:
        job: the merge.
        session: a Spark session.
        target: the lake table.
        lake: its name and source tables.
        state: it before the merge; None if it did not exist.
        columns: its columns now.
        parts: the source tables with their changes.
        commit: markers, and changes to existing rows.
        to_come: whether a first snapshot is pending, which will replace rows that cannot be completed.
    """

    job: MergeJob
    session: SparkSession
    target: LakeTarget
    lake: LakeMerge
    state: LakeTable | None
    columns: Sequence[LakeColumn]
    parts: Sequence[Contribution]
    commit: TableCommit
    to_come: bool

    def apply(self) -> int:
        """Commit; returns the number of changes. Where rows of the source have columns that the lake table lacks, they are added first."""
        refused, commit = dict[TableName, Refused | ConfigError](), self
        while True:
            try:
                return commit.attempt(refused)
            except ColumnsAdded as added:
                try:
                    commit = replace(commit, columns=self.target.evolve(added.schema).columns)
                except IncompatibleSchema as error:
                    refused[added.table] = Refused(error.message, replaced=True)

    def attempt(self, refused: dict[TableName, Refused | ConfigError]) -> int:
        """Apply the changes to the table as it is.

        Args:
            refused: source tables whose rows cannot be read from the source, and why; gets more of them.

        Raises:
            ColumnsAdded: rows of the source have columns that the lake table lacks.
        """
        guard, source_rows = any(part.work.guard for part in self.parts), self._source_rows(refused)
        changes = MergeChanges(self._changes, guard, self.to_come, source_rows, self._tasks)
        many = sum(part.rows for part in self.parts) > ROWS_BESIDE
        with _TURN if many else nullcontext():
            return self.target.apply(changes, self.commit)

    @property
    def _mode(self) -> Mode:
        return self.parts[0].work.mode

    @property
    def _files(self) -> list[tuple[DataFile, TableSchema]]:
        return [one for part in self.parts for one in files_of(part.routed.table, part.work.inputs)]

    def _source_rows(self, refused: dict[TableName, Refused | ConfigError]) -> SourceRows | None:
        """Return what reads rows from the source; None if all are complete and up to date, or while a first snapshot is pending."""
        job = self.job
        if job.origin is None or self.to_come or self._mode not in ONE_VERSION_MODES:
            return None
        if not self._reads_all and not any(file.partial_rows for file, _ in self._files):
            return None
        return SourceRows(
            self.session,
            job.config,
            job.store,
            job.plan,
            job.origin,
            job.lag,
            job.say,
            self.columns,
            self._mode,
            self._newest,
            refused,
        )

    @property
    def _reads_all(self) -> bool:
        """Whether rows are read from the source although they are complete."""
        rules = (self.job.config.reselect.rule(part.routed.database, part.routed.name) for part in self.parts)
        return any(reads_all(rule, self.job.lag) for rule in rules)

    def _tasks(self, fields: tuple[pa.Field, ...]) -> list[ChangesTask]:
        """Return the files of many changes, for executors; none if this process applies the changes, as all that need Spark or the source."""
        config, tasks = self.job.config, list[ChangesTask]()
        here = is_local(self.session) or is_few(self._files) or any(file.partial_rows for file, _ in self._files)
        # Executors need not have the clients of other stores.
        if here or config.store.ca is not None or config.store.scheme not in ("file", "s3") or self._reads_all:
            return []
        keys = keys_for_tasks(config.store)
        for part in self.parts:
            if part.entries or part.work.ranges or part.routed.target.where:
                return []
            shape = self._shape(part, fields)
            fills = self._fills(part, fields)
            tasks += (
                ChangesTask(config.store, keys, file, shape, fills) for file in change_files(part.work.inputs, shape)
            )
        return tasks

    def _shape(self, part: Contribution, fields: tuple[pa.Field, ...]) -> LakeShape:
        routed, reads, ahead_until = part.routed, part.work.marker.reads, part.work.ahead_until
        constants = routed.constants(self.job.config.source)
        return LakeShape(routed.table, fields, constants, routed.target.keeps, part.renames, reads, ahead_until)

    def _fills(self, part: Contribution, fields: Sequence[pa.Field]) -> list[Fill]:
        rules = [*fills_of(self.job.config.source, part, self.state, self.columns)]
        return fills_here(self.session, rules, self.columns, fields)

    def _changes(self, lake: LakeRows) -> Iterator[pa.Table]:
        fields = lake.fields
        for part in self.parts:
            routed = part.routed
            shape = self._shape(part, fields)
            fills = self._fills(part, fields)
            changes = (
                filtered_here(
                    self.session, filled(rows, fills), self.columns, routed.target.where, self._mode, routed.table
                )
                for rows in changes_of(self.job.store, part.work.inputs, shape)
            )
            yield from with_range_deletes(changes, [*self._range_deletes(part, shape, lake)])
            yield from (shape.reset(one) for one in part.entries)

    def _range_deletes(self, part: Contribution, shape: LakeShape, lake: LakeRows) -> Iterator[RangeDeletes]:
        if self.state is None or self._mode == "append":
            return
        key = tuple(name for name in self.state.primary_key if name not in shape.constants)
        rule = self.job.config.reselect.rule(part.routed.database, part.routed.name)
        for one in part.work.ranges:
            in_range = partial(keys_in_range, self.job.origin, rule.max_keys)
            kept = part.work.kept_before(one.point)
            yield RangeDeletes(one, kept, shape, key, lake, in_range, self._mode)

    @property
    def _newest(self) -> list[tuple[RoutedTable, TableSchema]]:
        """The source tables that have a schema, with the newest one of each."""
        newest = (
            (part.routed, newest_schema(part.routed.table, self.job.sources.of(part.routed.table), part.renames))
            for part in self.parts
        )
        return [(routed, schema) for routed, schema in newest if schema is not None]
