"""What several snapshots of a branch come to: data files and files of deletes that were added and removed, as one row delta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.runtime.java_classes import JavaClasses

Key = tuple[str, int]
"""Where a file is, and where in it a deletion vector begins; -1 for a whole file."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows a statement may bring, or take when negative; None for no bound."""

    least: int | None
    most: int | None

    def allows(self, before: int | None, after: int | None) -> bool:
        """Whether a statement may have led from one number of rows to another; unknown ones are not judged."""
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
    """Return how many rows a snapshot has, from its summary; None where that does not say.

    Args:
        summary: a mapping of texts; Java's will do.
    """
    records, deleted = summary.get("total-records"), summary.get("total-position-deletes")
    # How many rows an equality delete takes nobody knows before they are read.
    if records is None or int(summary.get("total-equality-deletes") or 0):
        return None
    return int(records) - int(deleted or 0)


@dataclass
class Net:
    """Files that snapshots added and removed, without those that came and went among them.

    Attributes:
        data: data files added, by their places.
        removed_data: data files of before that were removed.
        deletes: files of deletes added.
        removed_deletes: files of deletes of before that were removed.
        left: places of files that no snapshot needs once the net is committed.
        manifests: places of manifests that the snapshots wrote.
    """

    data: dict[Key, Any] = field(default_factory=dict)
    removed_data: dict[Key, Any] = field(default_factory=dict)
    deletes: dict[Key, Any] = field(default_factory=dict)
    removed_deletes: dict[Key, Any] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, table: Any, snapshots: Sequence[int]) -> Net:
        """Return the net of snapshots, oldest first.

        Args:
            table: Iceberg's own object.
            snapshots: their numbers.
        """
        net, io = cls(), table.io()
        for number in snapshots:
            snapshot = table.snapshot(number)
            net._take(net.data, net.removed_data, snapshot.addedDataFiles(io), snapshot.removedDataFiles(io))
            net._take(net.deletes, net.removed_deletes, snapshot.addedDeleteFiles(io), snapshot.removedDeleteFiles(io))
            net.left.add(str(snapshot.manifestListLocation()))
            own = set(snapshots)
            net.manifests |= {str(m.path()) for m in each(snapshot.allManifests(io)) if m.snapshotId() in own}
        net._drop_dangling()
        net.left -= {place for place, _ in (*net.data, *net.deletes)}  # one Puffin file holds many vectors
        return net

    def _take(self, added: dict[Key, Any], removed: dict[Key, Any], came: Any, went: Any) -> None:
        for file in each(went):
            key = _key(file)
            if added.pop(key, None) is not None:
                self.left.add(key[0])
            else:
                removed[key] = file
        added.update((_key(file), file) for file in each(came))

    def _drop_dangling(self) -> None:
        """Leave out deletion vectors of data files that are removed as a whole."""
        gone = {place for place, _ in self.removed_data} | self.left
        for key, file in list(self.deletes.items()):
            if file.referencedDataFile() in gone:
                self.left.add(key[0])
                del self.deletes[key]

    def commit_to(self, change: Any, parent: int, properties: Mapping[str, str], classes: JavaClasses) -> None:
        """Commit the net to ``main`` as one row delta of a transaction.

        Iceberg refuses when since the parent rows came, rows were deleted, or a file is no longer there of which rows are deleted.

        Args:
            change: the transaction.
            parent: the snapshot that was read.
            properties: of the new snapshot's summary.
            classes: where Iceberg's classes are.
        """
        delta = change.newRowDelta()
        for file in self.data.values():
            delta = delta.addRows(file)
        for file in self.removed_data.values():
            delta = delta.removeRows(file)
        for file in self.deletes.values():
            delta = delta.addDeletes(file)
        for file in self.removed_deletes.values():
            delta = delta.removeDeletes(file)
        needed, own = classes.named("java.util.ArrayList")(), {place for place, _ in self.data}
        for place in {file.referencedDataFile() for file in self.deletes.values()} - own - {None}:
            needed.add(place)
        for name, text in properties.items():
            delta = delta.set(name, text)
        delta = delta.validateFromSnapshot(parent)
        delta = delta.conflictDetectionFilter(
            classes.static("org.apache.iceberg.expressions.Expressions", "alwaysTrue")()
        )
        delta = delta.validateNoConflictingDataFiles().validateNoConflictingDeleteFiles()
        delta.validateDeletedFiles().validateDataFilesExist(needed).commit()


def remove_files(table: Any, net: Net, published: Any, classes: JavaClasses) -> None:
    """Remove what the branch's snapshots alone needed; what cannot be removed now goes with the lost files of the maintenance.

    Args:
        table: Iceberg's own object.
        net: what was published.
        published: the snapshot that shows it.
        classes: where Iceberg's classes are.
    """
    used = {str(manifest.path()) for manifest in each(published.allManifests(table.io()))}
    places = classes.named("java.util.ArrayList")()
    for place in sorted(net.left | (net.manifests - used)):
        places.add(place)
    classes.static("org.apache.iceberg.CatalogUtil", "deleteFiles")(table.io(), places, "branch", False)


def each(items: Any) -> Iterator[Any]:
    """Yield what a Java collection holds."""
    found: Iterable[Any] = items
    iterator: Any = found.iterator()  # type: ignore[attr-defined]
    while iterator.hasNext():  # Python's own iteration ends by an exception in Java, which costs many calls
        yield iterator.next()


def _key(file: Any) -> Key:
    place = str(file.location())
    return place, int(file.contentOffset()) if _is_vector(file) else -1


def _is_vector(file: Any) -> bool:
    """Whether a file is a deletion vector: a part of a Puffin file."""
    return str(file.content()) != "DATA" and file.contentOffset() is not None
