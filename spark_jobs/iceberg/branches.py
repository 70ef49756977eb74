"""Private branches of an Iceberg table: a job writes its statements there, and publishes them as one snapshot.

A branch belongs to the job that made it. Nobody removes it while the job may live (:data:`LEASE`). Safety does not rest on that:
Iceberg creates a missing branch from ``main`` at the next write, without the statements before. So each statement must have
written on the snapshot that the one before left (:meth:`Branch.follow`), and :func:`publish` commits only on the parent that
was read.
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
"""What the names of these branches begin with."""

MAIN = "main"

LEASE = 24 * 3600
"""Seconds without a commit after which a branch counts as left over by a job that was killed. A job that takes longer for one
statement loses its branch, notices it, and begins again."""

PUBLISH_ATTEMPTS = 5
"""How often the last commit is tried when another writer changed the table's metadata, but not its rows, at that moment."""


def new_branch(now: float | None = None) -> str:
    """Return a name that no other job has; it says when it was made (seconds since 1970)."""
    return f"{PREFIX}{int(time.time() if now is None else now):010d}_{secrets.token_hex(8)}"


def is_left_over(name: str, head_at: float, now: float) -> bool:
    """Whether a branch is one of a killed job.

    Args:
        name: of the branch.
        head_at: when its newest snapshot was committed, seconds since 1970.
        now: the time, seconds since 1970.
    """
    made = name.removeprefix(PREFIX).partition("_")[0]
    if not name.startswith(PREFIX) or not made.isdecimal():
        return False
    return now - max(int(made), head_at) > LEASE


@dataclass
class Branch:
    """A branch in use.

    Args:
        name: known to this job only.
        parent: the snapshot of ``main`` that the job read; None for a table without snapshots.
        snapshot_id: the newest snapshot of the branch.
        table: Iceberg's own object, as of the last look.
        of: the source table, for messages.

    Attributes:
        made: snapshots that the job's statements made, oldest first.
        rows: how many rows the table has at the head; None where Iceberg's summaries do not say it.
    """

    name: str
    parent: int | None
    snapshot_id: int
    table: Any
    of: str
    made: list[int] = field(default_factory=list)
    rows: int | None = None

    def follow(self, table: Any, change: Rows) -> None:
        """Hold a statement that was just executed against what it was to do.

        Args:
            table: Iceberg's own object, fresh from the catalog.
            change: how many rows it may have brought or taken.

        Raises:
            MergeConflict: the branch was removed, or the statement was written on something else.
            MergeError: it changed another number of rows than it could.
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
            # What was counted may have been computed again from the table of another commit, which is no wrong row.
            _refuse_other(table, MAIN, self.parent, self.of)
            raise _wrong_rows(self.of, f"{self.rows} rows before a statement, {rows} after it, expected {change}")
        if head != self.snapshot_id:
            self.made.append(head)
        self.table, self.snapshot_id, self.rows = table, head, rows


def head_of(table: Any, branch: str) -> int | None:
    """Return the newest snapshot of a branch; None when there is no such branch."""
    ref = table.refs().get(branch)
    return int(ref.snapshotId()) if ref is not None else None


def start_branch(table: Any, name: str, snapshot_id: int | None, of: str) -> Branch:
    """Create a branch at the snapshot of ``main`` that the job read."""
    manage = table.manageSnapshots()
    # Of a table without a snapshot Iceberg makes an empty one for the branch.
    created = manage.createBranch(name) if snapshot_id is None else manage.createBranch(name, snapshot_id)
    created.commit()
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
    """Remove the branches of jobs that were killed."""
    now = time.time() if now is None else now
    drop(
        table, [name for name in _refs(table) if name.startswith(PREFIX) and is_left_over(name, _at(table, name), now)]
    )


def drop(table: Any, branches: Collection[str]) -> None:
    """Remove branches, and the snapshots that only they show, from the table's metadata; those that are missing do no harm."""
    heads = {name: head_of(table, name) for name in _refs(table)}
    if not (gone := heads.keys() & set(branches)):
        return
    kept = {one for name, head in heads.items() if name not in gone for one in _line(table, head)}
    change = table.newTransaction()
    manage = change.manageSnapshots()
    for name in gone:
        manage = manage.removeBranch(name)
    manage.commit()
    forget(change, table, {one for name in gone for one in _line(table, heads[name])} - kept)
    change.commitTransaction()
    table.refresh()


def _at(table: Any, branch: str) -> float:
    """Return when the newest snapshot of a branch was committed, seconds since 1970."""
    return float(table.snapshot(head_of(table, branch)).timestampMillis()) / 1000


def _line(table: Any, head: int | None) -> Iterator[int]:
    """Yield a snapshot and those before it, as far as the table still has them."""
    while head is not None and (snapshot := table.snapshot(head)) is not None:
        yield head
        head = snapshot.parentId()


def _refs(table: Any) -> list[str]:
    """Return the names of a table's branches and tags."""
    names, found = table.refs().keySet().iterator(), []
    # Python's own iteration ends by an exception in Java, which pyspark takes for one that people must be told of: that costs
    # many calls.
    while names.hasNext():
        found.append(str(names.next()))
    return found


def refuse_moved(table: Any, branch: Branch) -> None:
    """Refuse to publish when ``main``, or the branch, is no longer where the job left it.

    Raises:
        MergeConflict: it has another snapshot.
    """
    _refuse_other(table, MAIN, branch.parent, branch.of)
    _refuse_other(table, branch.name, branch.snapshot_id, branch.of)


def _refuse_other(table: Any, name: str, expected: int | None, of: str) -> None:
    found = head_of(table, name)
    if found != expected:
        raise MergeConflict(
            "another commit came first",
            hint="Nothing was published. Run it again.",
            table=of,
            branch=name,
            expected_snapshot=expected,
            found_snapshot=found,
        )


def publish(branch: Branch, table: Any, properties: Mapping[str, str], classes: JavaClasses) -> int:
    """Make what the branch shows the table's next snapshot, remove the branch, in one commit, and return the snapshot.

    Several snapshots of the branch become a single one, which Iceberg validates against the parent that was read.

    Args:
        branch: whose statements are done.
        table: Iceberg's own object; what it says of refs and properties was checked.
        properties: of the snapshot's summary.
        classes: where Iceberg's classes are.

    Raises:
        MergeError: the snapshot would not have the rows that the statements left.
        Py4JJavaError: CommitFailedException when anything of the table's metadata changed meanwhile.
    """
    change = table.newTransaction()
    refuse_moved(change.table(), branch)
    # A change of the schema alone is not put upon what another commit has made meanwhile, so that all that was checked still
    # holds when this is committed.
    change.updateSchema().commit()
    net = None
    if branch.parent is None or len(branch.made) <= 1:
        change.manageSnapshots().fastForwardBranch(MAIN, branch.name).removeBranch(branch.name).commit()
    else:
        net = Net.of(table, branch.made)
        net.commit_to(change, branch.parent, properties, classes)
        change.manageSnapshots().removeBranch(branch.name).commit()
        forget(change, table, branch.made)
    published = change.table().currentSnapshot()
    rows = rows_of(published.summary())
    if not SAME_ROWS.allows(branch.rows, rows):
        raise _wrong_rows(branch.of, f"{branch.rows} rows on the branch, {rows} in the snapshot to be published")
    change.commitTransaction()
    if net is not None:
        remove_files(table, net, published, classes)
    return int(published.snapshotId())


def forget(change: Any, table: Any, snapshots: Collection[int], *, files: bool = False) -> None:
    """Remove snapshots from a table's metadata, where the table allows that.

    Args:
        change: a transaction, or the table itself.
        table: Iceberg's own object of the table.
        snapshots: their numbers.
        files: whether files that only they need are removed as well.
    """
    if not snapshots or str(table.properties().get("gc.enabled")).lower() == "false":
        return
    expire = change.expireSnapshots().expireOlderThan(0).cleanExpiredFiles(files)
    for snapshot in snapshots:
        expire = expire.expireSnapshotId(snapshot)
    expire.commit()


def _wrong_rows(table: str, what: str) -> MergeError:
    return MergeError(
        f"the number of rows of the lake table does not add up: {what}",
        hint=f"Nothing was published. Look for wrong rows: cdc verify {{source}} {table}. "
        f"Take the table again: cdc snapshot {{source}} {table}",
        table=table,
    )
