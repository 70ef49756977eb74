"""Combines snapshots of a branch and new data files into one row delta: the data and delete files that were added and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdc_lib.apply.stored_files import WHOLE
from spark_jobs.runtime.java_classes import JavaClasses

FEW_MANIFESTS = 50
"""Fewer manifests than this are read by one thread. Iceberg joins manifests when there are 100, by default."""

Key = tuple[str, int]
"""Of a file: its location, and its offset if it is a deletion vector, else :data:`WHOLE`."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Bounds of the number of rows that a statement may add, or remove if negative; None for no bound."""

    least: int | None
    most: int | None

    def allows(self, before: int | None, after: int | None) -> bool:
        """Whether a statement may change one number of rows to another; true if one is unknown."""
        if before is None or after is None:
            return True
        change = after - before
        return (self.least is None or change >= self.least) and (self.most is None or change <= self.most)

    def __str__(self) -> str:
        return (
            f"a change of {'any' if self.least is None else self.least} to {'any' if self.most is None else self.most}"
        )


SAME_ROWS = Rows(0, 0)
FEWER_ROWS = Rows(None, 0)


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


@dataclass
class Net:
    """Files that snapshots added and removed, without files that were added and removed in between.

    Attributes:
        data: added data files, by key.
        removed_data: older data files that were removed.
        deletes: added delete files.
        removed_deletes: older delete files that were removed.
        unneeded: locations of files that no snapshot needs once the net is committed.
        manifests: locations of manifests that the snapshots wrote.
    """

    data: dict[Key, Any] = field(default_factory=dict)
    removed_data: dict[Key, Any] = field(default_factory=dict)
    deletes: dict[Key, Any] = field(default_factory=dict)
    removed_deletes: dict[Key, Any] = field(default_factory=dict)
    unneeded: set[str] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, table: Any, snapshots: Sequence[int], files: Iterable[Any] = ()) -> Net:
        """Return the net of snapshots, oldest first.

        Args:
            table: Iceberg's Java object.
            snapshots: snapshot IDs.
            files: data files that are added after all of them, Iceberg's Java objects.
        """
        net, io = cls(), table.io()
        for number in snapshots:
            snapshot = table.snapshot(number)
            net._take(net.data, net.removed_data, snapshot.addedDataFiles(io), snapshot.removedDataFiles(io))
            net._take(net.deletes, net.removed_deletes, snapshot.addedDeleteFiles(io), snapshot.removedDeleteFiles(io))
            net.unneeded.add(str(snapshot.manifestListLocation()))
            net.manifests |= {
                str(m.path()) for m in each(snapshot.allManifests(io)) if m.snapshotId() in set(snapshots)
            }
        net.data.update((_key(file), file) for file in files)
        net._drop_dangling()
        net.unneeded -= {path for path, _ in (*net.data, *net.deletes)}  # one Puffin file holds many vectors
        return net

    def replace(self, done: Replacement) -> None:
        """Add what replaces existing rows."""
        self.data |= done.data
        self.deletes |= done.deletes
        self.removed_data |= done.removed_data
        self.removed_deletes |= done.removed_deletes

    def _take(self, added: dict[Key, Any], removed: dict[Key, Any], new: Any, old: Any) -> None:
        for file in each(old):
            key = _key(file)
            if added.pop(key, None) is not None:
                self.unneeded.add(key[0])
            else:
                removed[key] = file
        added.update((_key(file), file) for file in each(new))

    def _drop_dangling(self) -> None:
        """Leave out deletion vectors of data files that are removed."""
        removed = {path for path, _ in self.removed_data} | self.unneeded
        for key, file in list(self.deletes.items()):
            if file.referencedDataFile() in removed:
                self.unneeded.add(key[0])
                del self.deletes[key]

    def freed(self, snapshot: Any, io: Any) -> int:
        """Return how many rows a snapshot of the net has more because Iceberg removed deletes that had no rows.

        A compaction leaves them, and they count as deletes of rows until every data file is newer.
        """
        removed = sum(int(file.recordCount()) for file in self.removed_deletes.values())
        if int(snapshot.summary().get("removed-position-deletes") or 0) == removed:
            return 0
        numbers = (int(one.minSequenceNumber()) for one in each(snapshot.dataManifests(io)))
        # Negative for a manifest of removed files alone.
        oldest = min((one for one in numbers if one >= 0), default=int(snapshot.sequenceNumber()))
        others = (one for one in each(snapshot.removedDeleteFiles(io)) if _key(one) not in self.removed_deletes)
        return sum(int(one.recordCount()) for one in others if one.dataSequenceNumber() < oldest)

    def commit_to(self, change: Any, parent: int | None, properties: Mapping[str, str], classes: JavaClasses) -> None:
        """Commit the net to ``main`` as one row delta of a transaction.

        Iceberg refuses it if rows were added or deleted since the parent, or if a data file with new deletes no longer exists.

        Args:
            change: the transaction.
            parent: the snapshot that was read; None for a table without snapshots.
            properties: of the new snapshot's summary.
            classes: cache of Iceberg's classes.
        """
        delta = change.newRowDelta()
        if parent is None or has_few_manifests(change.table().snapshot(parent).summary()):
            here = in_this_thread(classes)
            delta = delta.scanManifestsWith(here)
            if not str(classes.static("org.apache.iceberg.IcebergBuild", "version")()).startswith("1.11."):
                delta = delta.writeManifestsWith(here, 1)  # before, the same threads wrote them
        for file in self.data.values():
            delta = delta.addRows(file)
        for file in self.removed_data.values():
            delta = delta.removeRows(file)
        for file in self.deletes.values():
            delta = delta.addDeletes(file)
        for file in self.removed_deletes.values():
            delta = delta.removeDeletes(file)
        needed, added = classes.named("java.util.ArrayList")(), {path for path, _ in self.data}
        for path in {file.referencedDataFile() for file in self.deletes.values()} - added - {None}:
            needed.add(path)
        for name, text in properties.items():
            delta = delta.set(name, text)
        if parent is not None:
            delta = delta.validateFromSnapshot(parent)
        delta = delta.conflictDetectionFilter(
            classes.static("org.apache.iceberg.expressions.Expressions", "alwaysTrue")()
        )
        delta = delta.validateNoConflictingDataFiles().validateNoConflictingDeleteFiles()
        delta.validateDeletedFiles().validateDataFilesExist(needed).commit()


def remove_files(table: Any, net: Net, published: Any, classes: JavaClasses) -> None:
    """Remove files that only the branch's snapshots needed; after a failure the maintenance removes them as orphans.

    Args:
        table: Iceberg's Java object.
        net: the published net.
        published: its snapshot.
        classes: cache of Iceberg's classes.
    """
    used = {str(manifest.path()) for manifest in each(published.allManifests(table.io()))}
    paths = classes.named("java.util.ArrayList")()
    for path in sorted(net.unneeded | (net.manifests - used)):
        paths.add(path)
    classes.static("org.apache.iceberg.CatalogUtil", "deleteFiles")(table.io(), paths, "branch", False)


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
