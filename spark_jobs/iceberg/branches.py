"""Private branches of an Iceberg table: a job writes to its own branch, and publishes it as one snapshot.

A branch belongs to the job that created it. Other jobs do not remove it while the job may live (:data:`LEASE`). Safety does not
depend on that: Iceberg creates a missing branch from ``main`` at the next write, without the earlier statements. So the parent
of each statement's snapshot must be the previous statement's (:meth:`Branch.follow`), and :func:`publish` commits only on the
parent that was read.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cdc_lib.errors import MergeConflict, MergeError
from spark_jobs.iceberg.row_delta import SAME_ROWS, Net, Rows, remove_files, rows_of
from spark_jobs.runtime.java_classes import JavaClasses

PREFIX = "cdc_"
"""Prefix of the names of these branches."""

MAIN = "main"

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
    """A branch in use.

    Args:
        name: unique to this job.
        parent: the snapshot of ``main`` that the job read; None for a table without snapshots.
        snapshot_id: the newest snapshot of the branch.
        table: Iceberg's Java object, as last loaded.
        of: the source table, for messages.

    Attributes:
        made: snapshots of the job's statements, oldest first.
        rows: number of rows at the head; None if Iceberg's summaries do not show it.
        beside: the second branch of the job, with the same parent: its rows are published with this one's. None without one.
    """

    name: str
    parent: int | None
    snapshot_id: int
    table: Any
    of: str
    made: list[int] = field(default_factory=list)
    rows: int | None = None
    beside: Branch | None = None

    @property
    def all(self) -> list[Branch]:
        """This branch, and the one beside it."""
        return [self] if self.beside is None else [self, self.beside]

    def take_over(self, added: int | None, table: Any) -> None:
        """Count what was written on the branch beside this one as written on this one.

        Args:
            added: number of rows that were added there; None if Iceberg's summaries do not show it.
            table: Iceberg's Java object, loaded after all statements.
        """
        self.rows = None if self.rows is None or added is None else self.rows + added
        self.made += self.beside.made if self.beside is not None else []
        self.table = table

    def follow(self, table: Any, change: Rows) -> int | None:
        """Check the snapshot of the statement that was just executed.

        Args:
            table: Iceberg's Java object, newly loaded from the catalog.
            change: number of rows that it may have added or removed.

        Returns:
            The number of rows that it added, negative for removed ones; None if Iceberg's summaries do not show it.

        Raises:
            MergeConflict: the branch was removed, or the statement was written on another snapshot.
            MergeError: it changed an impossible number of rows.
        """
        head = head_of(table, self.name)
        snapshot = table.snapshot(head) if head is not None else None
        if head is None or snapshot is None or (head != self.snapshot_id and snapshot.parentId() != self.snapshot_id):
            raise MergeConflict(
                "the branch of this job was removed while it was written",
                hint="Nothing was published; run it again. Let no other tool remove branches whose names begin with cdc_.",
                table=self.of,
                branch=self.name,
            )
        rows = rows_of(snapshot.summary())
        if not change.allows(self.rows, rows):
            # The frame may have been computed again from another commit's table, which is a conflict, not a wrong row.
            _refuse_other(table, MAIN, self.parent, self.of)
            raise wrong_rows(self.of, f"{self.rows} rows before a statement, {rows} after it, expected {change}")
        if head != self.snapshot_id:
            self.made.append(head)
        before, self.table, self.snapshot_id, self.rows = self.rows, table, head, rows
        return None if before is None or rows is None else rows - before


def head_of(table: Any, branch: str) -> int | None:
    """Return the newest snapshot of a branch; None if the branch does not exist."""
    ref = table.refs().get(branch)
    return int(ref.snapshotId()) if ref is not None else None


def start_branch(table: Any, name: str, snapshot_id: int | None, of: str, beside: str | None = None) -> Branch:
    """Create a branch at the snapshot of ``main`` that the job read, and a second one beside it in the same commit."""
    manage = table.manageSnapshots()
    for one in (name, beside):
        # For a table without a snapshot, Iceberg creates an empty one for the branch.
        if one is not None:
            manage = manage.createBranch(one) if snapshot_id is None else manage.createBranch(one, snapshot_id)
    manage.commit()
    branch = _started(table, name, snapshot_id, of)
    branch.beside = _started(table, beside, snapshot_id, of) if beside is not None else None
    return branch


def _started(table: Any, name: str, snapshot_id: int | None, of: str) -> Branch:
    head = head_of(table, name)
    if head is None:
        raise MergeConflict(
            "the branch of this job was removed at once",
            hint="Nothing was written; run it again. Let no other tool remove branches whose names begin with cdc_.",
            table=of,
            branch=name,
        )
    return Branch(name, snapshot_id, head, table, of, rows=rows_of(table.snapshot(head).summary()))


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
    _refuse_other(table, MAIN, branch.parent, branch.of)
    for one in branch.all:
        _refuse_other(table, one.name, one.snapshot_id, branch.of)


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


def publish(branch: Branch, table: Any, properties: Mapping[str, str], classes: JavaClasses) -> int:
    """Commit the branch as the table's next snapshot and remove the branch, in one commit; returns the snapshot.

    Several snapshots of the branch become one, which Iceberg validates against the parent that was read.

    Args:
        branch: a branch with all statements executed.
        table: Iceberg's Java object, whose refs and properties were checked.
        properties: of the snapshot's summary.
        classes: cache of Iceberg's classes.

    Raises:
        MergeError: the snapshot would have another number of rows than the branch.
        Py4JJavaError: CommitFailedException if the table's metadata changed since it was loaded.
    """
    change = table.newTransaction()
    refuse_moved(change.table(), branch)
    # Iceberg does not rebase a schema change on another commit, so all checks still hold at the commit.
    change.updateSchema().commit()
    net = None
    if branch.parent is None or (len(branch.made) <= 1 and branch.beside is None):
        change.manageSnapshots().fastForwardBranch(MAIN, branch.name).removeBranch(branch.name).commit()
    else:
        net = Net.of(table, branch.made)
        net.commit_to(change, branch.parent, properties, classes)
        removal = change.manageSnapshots()
        for one in branch.all:
            removal = removal.removeBranch(one.name)
        removal.commit()
        expire(change, table, branch.made)
    published = change.table().currentSnapshot()
    rows = rows_of(published.summary())
    if not SAME_ROWS.allows(branch.rows, rows):
        raise wrong_rows(branch.of, f"{branch.rows} rows on the branch, {rows} in the snapshot to be published")
    change.commitTransaction()
    if net is not None:
        remove_files(table, net, published, classes)
    return int(published.snapshotId())


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


def wrong_rows(table: str, what: str) -> MergeError:
    """Return the error of a table whose number of rows is not the one that the merge computed."""
    return MergeError(
        f"the number of rows of the lake table does not add up: {what}",
        hint=f"Nothing was published. Look for wrong rows: cdc verify {{source}} {table}. "
        f"Take a new snapshot: cdc snapshot {{source}} {table}",
        table=table,
    )
