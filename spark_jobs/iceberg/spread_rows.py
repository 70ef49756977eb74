"""Applies many changes to a lake table by tasks on executors: the driver splits, joins what they found, and commits.

Three Spark jobs: keys of some changes, from which the parts are cut; all changes by part, and what each part makes; with rules, the
other rows of the table's files. Tasks read and write files with Python, so executors need the modules of
:data:`spark_jobs.runtime.executors.MODULES`; the driver sends them this project's code. Without these modules the driver does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pyspark import RDD
from pyspark.sql import SparkSession

from cdc_lib.apply.parts import PART_BYTES, PartCuts
from cdc_lib.apply.stored_files import OpenFiles, StoredFile
from cdc_lib.apply.table_part import DeletesOf, KeyBounds, TablePart
from cdc_lib.apply.tasks import (
    ChangesTask,
    RowsTask,
    TaskReport,
    TouchedFile,
    answers,
    joined,
    pieces_of,
    sample_of_file,
    table_of_samples,
)
from cdc_lib.errors import CdcError
from cdc_lib.lake.task_files import TaskFiles
from spark_jobs.iceberg.deleted_rows import new_name
from spark_jobs.iceberg.row_delta import Replacement
from spark_jobs.iceberg.row_files import RowFiles
from spark_jobs.runtime.executors import run_our_code
from spark_jobs.runtime.parallelism import in_threads

T = TypeVar("T")

_EXPANDED = 4
"""About how much larger changes are in memory than in their files."""

MOST_PARTS = 10_000
"""Each part is a task."""


@dataclass(frozen=True, slots=True)
class SpreadRows:
    """Applies changes to a table by tasks.

    Args:
        session: a Spark session.
        files: of the table.
        part: has the rules, and opens files without Java.
    """

    session: SparkSession
    files: RowFiles
    part: TablePart

    @classmethod
    def of(cls, session: SparkSession, files: RowFiles, part: TablePart) -> SpreadRows | None:
        """Return what applies changes to a table; None if executors cannot."""
        properties = files.storage.properties_for_tasks(str(files.table.location()))
        if properties is None or part.lake.computed or not run_our_code(session):
            return None
        return cls(session, files, replace(part, open=OpenFiles(TaskFiles(properties), files.fields)))

    def apply(self, changes: Sequence[ChangesTask]) -> tuple[Replacement, dict[str, DeletesOf]]:
        """Apply changes, and the rules to all other rows; returns what was written, and by file the rows that are deleted.

        Args:
            changes: files with all of them, at least one.
        """
        stored = {file.location: file for file in self.files.planned(KeyBounds(), with_bounds=True)}
        place = str(self.files.table.locationProvider().newDataLocation(new_name("")))
        task = RowsTask(self.part, self.files.format, place, [*stored.values()])
        done, touched = Replacement(), dict[str, TouchedFile]()
        for report in self._applied(changes, task):
            self._take(report, done, touched)
        if self.part.cuts or self.part.fills:
            pairs = [(file, touched.get(file.location)) for file in task.files]
            reports = self._answers(pairs, replace(task, files=()).apply_rules) if pairs else ()
            touched = {}
            for report in reports:
                self._take(report, done, touched)
        return done, self._found([(stored[location], rows) for location, rows in touched.items()])

    def _in_tasks(self, items: Sequence[Any]) -> RDD[Any]:
        """Return items, each of which a task of its own takes."""
        return self.session.sparkContext.parallelize(items, len(items))

    def _answers(self, items: Sequence[Any], work: Callable[[Any], Iterable[T]]) -> list[T]:
        """Return what tasks make of items."""
        return _without_errors(self._in_tasks(items).flatMap(partial(answers, work)).collect())

    def _applied(self, changes: Sequence[ChangesTask], task: RowsTask) -> Sequence[TaskReport]:
        if self.part.lake.mode == "append":
            return self._answers(changes, task.append)
        samples = self._answers(changes, partial(sample_of_file, self.part.lake.primary_key))
        size = sum(change.file.file.bytes for change in changes) * _EXPANDED
        cuts = PartCuts.of(table_of_samples(samples), max(1, min(-(-size // PART_BYTES), MOST_PARTS)))
        pieces = self._in_tasks([*enumerate(changes)]).flatMap(partial(pieces_of, cuts))
        by_part = pieces.partitionBy(len(cuts.values) + 1, int)
        return _without_errors(by_part.mapPartitions(partial(answers, task.apply)).collect())

    def _found(self, touched: Sequence[tuple[StoredFile, TouchedFile]]) -> dict[str, DeletesOf]:
        """Return the touched rows by file, with what deletes rows of it already."""
        found, store = dict[str, DeletesOf](), self.files.storage

        def look(pair: tuple[StoredFile, TouchedFile]) -> None:
            file, rows = pair
            found[file.location] = DeletesOf(file, self.files.open.dead(file), rows.settled, rows.positions)

        in_threads(self.session, look, touched, store.at_once(file.location for file, _ in touched))
        return found

    def _take(self, report: TaskReport, done: Replacement, touched: dict[str, TouchedFile]) -> None:
        done.changes += report.changes
        done.rows += report.rows
        for file in report.files:
            self.files.add(file, done)
        for one in report.touched:
            touched[one.location] = joined(one, touched.get(one.location))


def _without_errors(found: Sequence[T | CdcError]) -> list[T]:
    """Return what tasks found.

    Raises:
        CdcError: that of a task.
    """
    for answer in found:
        if isinstance(answer, CdcError):
            raise answer
    return [answer for answer in found if not isinstance(answer, CdcError)]
