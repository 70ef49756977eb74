"""The commit of a merge: new data and delete files, and those that they replace, as one row delta on the snapshot that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cdc_lib.apply.stored_files import WHOLE
from cdc_lib.apply.table_part import wrong_rows
from cdc_lib.model.lake_table import refuse_moved
from cdc_lib.model.pace import counted
from spark_jobs.runtime.java_classes import JavaClasses

FEW_MANIFESTS = 50
"""Fewer manifests than this are read by one thread. Iceberg joins manifests when there are 100, by default."""

Key = tuple[str, int]
"""Of a file: its location, and its offset if it is a deletion vector, else :data:`cdc_lib.apply.stored_files.WHOLE`."""


def rows_of(summary: Any) -> int | None:
    """Return the number of rows of a snapshot, from its summary; None if the summary does not show it.

    Rows that only an equality delete of another tool removes count as rows. A merge writes no equality deletes, so they change
    no difference between two snapshots of it, unless whole files were removed.

    Args:
        summary: a mapping of texts, Python's or Java's.
    """
    records, deleted = summary.get("total-records"), summary.get("total-position-deletes")
    if records is None or (
        int(summary.get("total-equality-deletes") or 0) and int(summary.get("deleted-records") or 0)
    ):
        return None
    return int(records) - int(deleted or 0)


@dataclass(slots=True)
class Replacement:
    """What replaces rows; data and delete files are Iceberg's Java objects.

    Args:
        changes: number of changes, the last one of each key.
        deleted: number of rows that are deleted.
        rows: number of new rows.
        copied: number of other rows of files of which a row is deleted, which are written again.
        uncounted: rows by which Iceberg's count falls besides: more deletes have them than before, negative if fewer.
        data: new data files, by key.
        deletes: new deletion vectors.
        removed_data: data files all of whose rows are deleted or written again.
        removed_deletes: deletion vectors that are in the new ones, or whose data files are removed.
    """

    changes: int = 0
    deleted: int = 0
    rows: int = 0
    copied: int = 0
    uncounted: int = 0
    data: dict[Key, Any] = field(default_factory=dict)
    deletes: dict[Key, Any] = field(default_factory=dict)
    removed_data: dict[Key, Any] = field(default_factory=dict)
    removed_deletes: dict[Key, Any] = field(default_factory=dict)

    def add(self, other: Replacement) -> None:
        """Add what replaces other rows."""
        self.changes += other.changes
        self.deleted += other.deleted
        self.rows += other.rows
        self.copied += other.copied
        self.uncounted += other.uncounted
        self.data |= other.data
        self.deletes |= other.deletes
        self.removed_data |= other.removed_data
        self.removed_deletes |= other.removed_deletes

    def refuse_wrong(self, of: str) -> None:
        """Refuse files with another number of rows than were to be written.

        Args:
            of: the source table.

        Raises:
            MergeError: they have.
        """
        added, written = sum(int(file.recordCount()) for file in self.data.values()), self.rows + self.copied
        if added != written:
            raise wrong_rows(of, f"new files have {counted(added, 'row')}, and {written} were to be written")


@dataclass(frozen=True, slots=True)
class RowCommit:
    """The next snapshot of a table.

    Args:
        done: its files.
        parent: the snapshot that the merge read; None for a table without snapshots.
        before: the number of rows then; None if Iceberg's summaries do not show it.
        of: the source table, for messages.
        properties: of the snapshot's summary, of the number of rows after it.
        check: refuses Iceberg's Java object of the table as it is when the commit begins, which may be newer than what was read.
        classes: cache of Iceberg's classes.
    """

    done: Replacement
    parent: int | None
    before: int | None
    of: str
    properties: Callable[[int | None], Mapping[str, str]]
    check: Callable[[Any], None]
    classes: JavaClasses

    @property
    def after(self) -> int | None:
        """The number of rows after the commit; None if unknown."""
        return None if self.before is None else self.before - self.done.deleted - self.done.uncounted + self.done.rows

    def publish(self, table: Any) -> int:
        """Commit; returns the snapshot.

        Args:
            table: Iceberg's Java object.

        Raises:
            MergeConflict: another commit came first.
            MergeError: the snapshot would have another number of rows than the merge computed.
            Py4JJavaError: CommitFailedException if the table's metadata changed since it was loaded.
        """
        expected = self.after
        change = self.begun(table, expected)
        if expected is not None and (freed := self._freed(change.table().currentSnapshot(), table.io())):
            expected += freed
            change = self.begun(table, expected)
        published = change.table().currentSnapshot()
        refuse_other_rows(expected, published.summary(), self.of)
        change.commitTransaction()
        return int(published.snapshotId())

    def begun(self, table: Any, expected: int | None) -> Any:
        """Return a transaction with the files, which is not committed."""
        change = table.newTransaction()
        refuse_moved(self.of, self.parent, current_snapshot(change.table()))
        self.check(change.table())
        # Iceberg does not rebase a schema change on another commit, so all checks still hold at the commit.
        change.updateSchema().commit()
        self._add_to(change, expected)
        return change

    def _add_to(self, change: Any, expected: int | None) -> None:
        """Commit the files as one row delta of a transaction.

        Iceberg refuses it if rows were added or deleted since the parent, or if a data file with new deletes no longer exists.
        """
        delta, done = change.newRowDelta(), self.done
        if self.parent is None or has_few_manifests(change.table().snapshot(self.parent).summary()):
            here = in_this_thread(self.classes)
            delta = delta.scanManifestsWith(here)
            if not str(self.classes.static("org.apache.iceberg.IcebergBuild", "version")()).startswith("1.11."):
                delta = delta.writeManifestsWith(here, 1)  # before, the same threads wrote them
        for file in done.data.values():
            delta = delta.addRows(file)
        for file in done.removed_data.values():
            delta = delta.removeRows(file)
        for file in done.deletes.values():
            delta = delta.addDeletes(file)
        for file in done.removed_deletes.values():
            delta = delta.removeDeletes(file)
        needed, added = self.classes.named("java.util.ArrayList")(), {path for path, _ in done.data}
        for path in {file.referencedDataFile() for file in done.deletes.values()} - added - {None}:
            needed.add(path)
        for name, text in self.properties(expected).items():
            delta = delta.set(name, text)
        if self.parent is not None:
            delta = delta.validateFromSnapshot(self.parent)
        every = self.classes.static("org.apache.iceberg.expressions.Expressions", "alwaysTrue")()
        delta = delta.conflictDetectionFilter(every)
        delta = delta.validateNoConflictingDataFiles().validateNoConflictingDeleteFiles()
        delta.validateDeletedFiles().validateDataFilesExist(needed).commit()

    def _freed(self, snapshot: Any, io: Any) -> int:
        """Return how many rows a snapshot has more because Iceberg removed deletes that had no rows.

        A compaction leaves them, and they count as deletes of rows until every data file is newer.
        """
        removed = sum(int(file.recordCount()) for file in self.done.removed_deletes.values())
        if int(snapshot.summary().get("removed-position-deletes") or 0) == removed:
            return 0
        numbers = (int(one.minSequenceNumber()) for one in each(snapshot.dataManifests(io)))
        # Negative for a manifest of removed files alone.
        oldest = min((one for one in numbers if one >= 0), default=int(snapshot.sequenceNumber()))
        others = (one for one in each(snapshot.removedDeleteFiles(io)) if _key(one) not in self.done.removed_deletes)
        return sum(int(one.recordCount()) for one in others if one.dataSequenceNumber() < oldest)


def current_snapshot(table: Any) -> int | None:
    """Return the current snapshot of Iceberg's Java object of a table; None if it has none."""
    snapshot = table.currentSnapshot()
    return int(snapshot.snapshotId()) if snapshot is not None else None


def refuse_other_rows(expected: int | None, summary: Any, of: str) -> None:
    """Refuse a snapshot with another number of rows than the merge computed.

    Args:
        expected: number of rows; None if unknown.
        summary: of the snapshot that is to be committed.
        of: the source table.

    Raises:
        MergeError: it has.
    """
    found = rows_of(summary)
    if None not in (expected, found) and found != expected:
        raise wrong_rows(of, f"rows: {expected} by the merge, {found} in the snapshot to be published")


def in_this_thread(classes: JavaClasses) -> Any:
    """Return an executor for Iceberg that has no threads: it looks only every 10 ms whether those of its pool are done."""
    return classes.static(
        "org.apache.iceberg.relocated.com.google.common.util.concurrent.MoreExecutors", "newDirectExecutorService"
    )()


def has_few_manifests(summary: Any) -> bool:
    """Whether one thread reads the manifests of a snapshot as fast as several; not if their number is not known.

    Args:
        summary: of the snapshot, a mapping of texts, Python's or Java's.
    """
    counts = [summary.get(f"manifests-{what}") for what in ("created", "kept")]
    return None not in counts and sum(map(int, counts)) < FEW_MANIFESTS


def each(items: Any) -> Iterator[Any]:
    """Yield the items of a Java collection."""
    collection: Iterable[Any] = items
    iterator: Any = collection.iterator()  # type: ignore[attr-defined]
    while iterator.hasNext():  # Python's iteration ends with a Java exception, which costs many calls
        yield iterator.next()


def _key(file: Any) -> Key:
    path = str(file.location())
    return path, int(file.contentOffset()) if _is_vector(file) else WHOLE


def _is_vector(file: Any) -> bool:
    """Whether a file is a deletion vector: a part of a Puffin file."""
    return str(file.content()) != "DATA" and file.contentOffset() is not None
