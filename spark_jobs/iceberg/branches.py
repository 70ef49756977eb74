"""Private branches of an Iceberg table: a job changes rows on its own branch, and publishes it as one snapshot with its new rows.

A branch belongs to the job that created it. Other jobs do not remove it while the job may live (:data:`LEASE`). Safety does not
depend on that: Iceberg creates a missing branch from ``main`` at the next write, without the earlier statements. So the parent
of each statement's snapshot must be the previous statement's (:meth:`Branch.follow`), and :func:`publish` commits only on the
parent that was read.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from cdc_lib.apply.table_part import wrong_rows
from cdc_lib.errors import MergeConflict, MergeError
from spark_jobs.iceberg.row_delta import SAME_ROWS, Net, Replacement, Rows, remove_files, rows_of
from spark_jobs.runtime.java_classes import JavaClasses

PREFIX = "cdc_"
"""Prefix of the names of these branches."""

MAIN = "main"

STATEMENT_PROPERTY = "cdc.statement-of"
"""Snapshot summary property of each statement of a merge: its branch. What is published does not have it."""

LEASE = 24 * 3600
"""Seconds without a commit after which a branch counts as left over by a killed job. A job whose statement takes longer loses
its branch, detects that, and starts again."""

PUBLISH_ATTEMPTS = 5
"""Attempts of the last commit when another writer changes the table's metadata, but not its rows, at the same time."""


def new_branch(now: float | None = None) -> str:
    """Return a unique name, which contains its creation time (seconds since 1970)."""
    return f"{PREFIX}{int(time.time() if now is None else now):010d}_{secrets.token_hex(8)}"


def is_left_over(name: str, head_at: float, now: float) -> bool:
    """Whether a branch was left over by a killed job.

    Args:
        name: of the branch.
        head_at: commit time of its newest snapshot, seconds since 1970.
        now: the time, seconds since 1970.
    """
    created = name.removeprefix(PREFIX).partition("_")[0]
    if not name.startswith(PREFIX) or not created.isdecimal():
        return False
    return now - max(int(created), head_at) > LEASE


@dataclass
class Branch:
    """A branch in use, and the new rows that are published with it.

    Args:
        name: unique to this job.
        parent: the snapshot of ``main`` that the job read; None for a table without snapshots.
        table: Iceberg's Java object, as last loaded.
        of: the source table, for messages.
        rows: number of rows at the head, with those of the new files; None if Iceberg's summaries do not show it.

    Attributes:
        snapshot_id: the newest snapshot of the branch; None until a statement needs the branch.
        made: snapshots of the job's statements, oldest first.
        files: new data files, Iceberg's Java objects.
        replaced: what replaces rows without a statement.
    """

    name: str
    parent: int | None
    table: Any
    of: str
    rows: int | None
    snapshot_id: int | None = None
    made: list[int] = field(default_factory=list)
    files: list[Any] = field(default_factory=list)
    replaced: Replacement = field(default_factory=Replacement)

    def replace(self, done: Replacement) -> None:
        """Take over what replaces rows, and is no statement.

        Raises:
            MergeError: the new files have another number of rows than were written.
        """
        added = sum(int(file.recordCount()) for file in done.data.values())
        written = done.rows + done.copied
        self._refuse_wrong(0, added, Rows(written, written))
        self.replaced = done
        self.rows = None if self.rows is None else self.rows - done.deleted - done.uncounted + done.rows

    def add(self, files: Collection[Any], change: Rows) -> int:
        """Take over new data files.

        Args:
            files: Iceberg's Java objects.
            change: number of rows that they may have.

        Returns:
            Their number of rows.

        Raises:
            MergeConflict: another writer came first, from whose table the rows may have been computed.
            MergeError: they have an impossible number of rows.
        """
        added = sum(int(file.recordCount()) for file in files)
        self._refuse_wrong(0, added, change)
        self.files += files
        self.rows = None if self.rows is None else self.rows + added
        return added

    def _refuse_wrong(self, before: int | None, after: int | None, change: Rows) -> None:
        if not change.allows(before, after):
            # The frame may have been computed again from another commit's table, which is a conflict, not a wrong row.
            self.table.refresh()
            refuse_moved_main(self.table, self)
            raise wrong_rows(self.of, f"rows: {before} before a statement, {after} after it, expected {change}")

    def follow(self, table: Any, change: Rows) -> int | None:
        """Check the snapshot of the statement that was just executed.

        Args:
            table: Iceberg's Java object, newly loaded from the catalog.
            change: number of rows that it may have added or removed.

        Returns:
            The number of rows that it added, negative for removed ones; None if Iceberg's summaries do not show it.

        Raises:
            MergeConflict: the branch was removed, the statement was written on another snapshot, or another commit came first.
            MergeError: it changed an impossible number of rows, or the table itself.
        """
        refuse_moved_main(table, self)
        head = head_of(table, self.name)
        snapshot = table.snapshot(head) if head is not None else None
        if head is None or snapshot is None or (head != self.snapshot_id and snapshot.parentId() != self.snapshot_id):
            raise MergeConflict(
                "the branch of this job was removed while it was written",
                hint="Nothing was published; run it again. Let no other tool remove branches whose names begin with cdc_.",
                table=self.of,
                branch=self.name,
            )
        rows, self.table = rows_of(snapshot.summary()), table
        self._refuse_wrong(self.rows, rows, change)
        if head != self.snapshot_id:
            self.made.append(head)
        before, self.snapshot_id, self.rows = self.rows, head, rows
        return None if before is None or rows is None else rows - before


def head_of(table: Any, branch: str) -> int | None:
    """Return the newest snapshot of a branch; None if the branch does not exist."""
    ref = table.refs().get(branch)
    return int(ref.snapshotId()) if ref is not None else None


def open_branch(table: Any, name: str, snapshot_id: int | None, of: str) -> Branch:
    """Return a branch at the snapshot of ``main`` that the job read, which is not created yet."""
    parent = table.snapshot(snapshot_id) if snapshot_id is not None else None
    return Branch(name, snapshot_id, table, of, rows_of(parent.summary()) if parent is not None else 0)


def start_branch(branch: Branch) -> None:
    """Create a branch, for its first statement.

    Raises:
        MergeConflict: another tool removed it at once.
    """
    branch.table.manageSnapshots().createBranch(branch.name, branch.parent).commit()
    branch.snapshot_id = head_of(branch.table, branch.name)
    if branch.snapshot_id is None:
        raise MergeConflict(
            "the branch of this job was removed at once",
            hint="Nothing was written; run it again. Let no other tool remove branches whose names begin with cdc_.",
            table=branch.of,
            branch=branch.name,
        )


def drop_left_over(table: Any, now: float | None = None) -> None:
    """Remove the branches of killed jobs."""
    now = time.time() if now is None else now
    drop(
        table, [name for name in _refs(table) if name.startswith(PREFIX) and is_left_over(name, _at(table, name), now)]
    )


def drop(table: Any, branches: Collection[str]) -> None:
    """Remove branches, and snapshots that only they reference, from the table's metadata; missing branches are ignored."""
    heads = {name: head_of(table, name) for name in _refs(table)}
    if not (removed := heads.keys() & set(branches)):
        return
    kept = {one for name, head in heads.items() if name not in removed for one in _ancestors(table, head)}
    change = table.newTransaction()
    manage = change.manageSnapshots()
    for name in removed:
        manage = manage.removeBranch(name)
    manage.commit()
    expire(change, table, {one for name in removed for one in _ancestors(table, heads[name])} - kept)
    change.commitTransaction()
    table.refresh()


def _at(table: Any, branch: str) -> float:
    """Return the commit time of a branch's newest snapshot, seconds since 1970."""
    return float(table.snapshot(head_of(table, branch)).timestampMillis()) / 1000


def _ancestors(table: Any, head: int | None) -> Iterator[int]:
    """Yield a snapshot and its ancestors, as far as the table still has them."""
    while head is not None and (snapshot := table.snapshot(head)) is not None:
        yield head
        head = snapshot.parentId()


def _refs(table: Any) -> list[str]:
    """Return the names of a table's branches and tags."""
    iterator, names = table.refs().keySet().iterator(), []
    # Python's iteration ends with a Java exception, whose text pyspark fetches by many calls.
    while iterator.hasNext():
        names.append(str(iterator.next()))
    return names


def refuse_moved(table: Any, branch: Branch) -> None:
    """Refuse to publish if ``main`` or the branch has another snapshot than the job expects.

    Raises:
        MergeConflict: it has another snapshot.
    """
    refuse_moved_main(table, branch)
    if branch.snapshot_id is not None:
        _refuse_other(table, branch.name, branch.snapshot_id, branch.of)


def refuse_moved_main(table: Any, branch: Branch) -> None:
    """Refuse to continue if ``main`` is not where the job read it: no statement of the job may change it.

    If Spark wrote a statement of the job there, instead of to the branch or to files without a commit, ``main`` is set back.

    Raises:
        MergeConflict: another writer came first.
        MergeError: the job's own statement is there.
    """
    head = head_of(table, MAIN)
    if head == branch.parent:
        return
    newer = takewhile(lambda one: one != branch.parent, _ancestors(table, head))
    own = [one for one in newer if table.snapshot(one).summary().get(STATEMENT_PROPERTY) == branch.name]
    if not own:
        _refuse_other(table, MAIN, branch.parent, branch.of)
    is_undone = own == [head] and _undone(branch, own[0])
    raise MergeError(
        "Spark wrote a statement of the merge to the table itself, where readers see it, instead of to the merge's own branch: "
        + ("it is undone" if is_undone else "its rows are still there"),
        hint="This Spark or this Iceberg does not write as the merge needs it: use Spark 4.1 with Iceberg 1.11 or 1.12. If its rows are "
        f"still there, take a new snapshot as well: cdc snapshot {{source}} {branch.of}",
        table=branch.of,
        snapshot=own[0],
    )


def _undone(branch: Branch, stray: int) -> bool:
    """Set ``main`` back to the snapshot that the job read, if a statement of the job is still its newest commit."""
    if branch.parent is None:
        return False
    change = branch.table.newTransaction()
    if head_of(change.table(), MAIN) != stray:
        return False
    change.updateSchema().commit()  # so that it is not rebased on another commit, which would be lost
    change.manageSnapshots().rollbackTo(branch.parent).commit()
    change.commitTransaction()
    return True


def _refuse_other(table: Any, name: str, expected: int | None, of: str) -> None:
    current = head_of(table, name)
    if current != expected:
        raise MergeConflict(
            "another commit came first",
            hint="Nothing was published. Run it again.",
            table=of,
            branch=name,
            expected_snapshot=expected,
            found_snapshot=current,
        )


def publish(
    branch: Branch, table: Any, properties: Callable[[int | None], Mapping[str, str]], classes: JavaClasses
) -> int:
    """Commit the branch and its new files as the table's next snapshot and remove the branch, in one commit; returns the snapshot.

    Iceberg validates what was not one statement on the branch against the parent that was read.

    Args:
        branch: a branch with all statements executed.
        table: Iceberg's Java object, whose refs and properties were checked.
        properties: of the snapshot's summary, of a number of rows by that summary.
        classes: cache of Iceberg's classes.

    Raises:
        MergeError: the snapshot would have another number of rows than the branch.
        Py4JJavaError: CommitFailedException if the table's metadata changed since it was loaded.
    """
    net = Net.of(table, branch.made, branch.files)
    net.replace(branch.replaced)
    change = _changed(branch, table, net, properties(branch.rows), classes)
    expected = branch.rows
    if expected is not None and (freed := net.freed(change.table().currentSnapshot(), table.io())):
        expected += freed
        change = _changed(branch, table, net, properties(expected), classes)
    published = change.table().currentSnapshot()
    rows = rows_of(published.summary())
    if not SAME_ROWS.allows(expected, rows):
        raise wrong_rows(branch.of, f"rows: {expected} on the branch, {rows} in the snapshot to be published")
    change.commitTransaction()
    if branch.made:
        remove_files(table, net, published, classes)
    return int(published.snapshotId())


def _changed(branch: Branch, table: Any, net: Net, properties: Mapping[str, str], classes: JavaClasses) -> Any:
    """Return a transaction with the net and without the branch, which is not committed."""
    change = table.newTransaction()
    refuse_moved(change.table(), branch)
    # Iceberg does not rebase a schema change on another commit, so all checks still hold at the commit.
    change.updateSchema().commit()
    net.commit_to(change, branch.parent, properties, classes)
    if branch.snapshot_id is not None:
        change.manageSnapshots().removeBranch(branch.name).commit()
        expire(change, table, branch.made)
    return change


def expire(change: Any, table: Any, snapshots: Collection[int], *, files: bool = False) -> None:
    """Expire snapshots of a table, if the table allows that.

    Args:
        change: a transaction, or the table itself.
        table: Iceberg's Java object of the table.
        snapshots: snapshot IDs.
        files: whether to remove files that only they reference.
    """
    if not snapshots or str(table.properties().get("gc.enabled")).lower() == "false":
        return
    expiry = change.expireSnapshots().expireOlderThan(0).cleanExpiredFiles(files)
    for snapshot in snapshots:
        expiry = expiry.expireSnapshotId(snapshot)
    expiry.commit()
