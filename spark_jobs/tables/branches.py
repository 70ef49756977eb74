"""Branches of an Iceberg table, by Iceberg's own objects: each function is one commit to the catalog."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from typing import Any

from cdc_lib.errors import MergeConflict

PREFIX = "cdc_"
"""What the names of a merge's branches begin with."""

MAIN = "main"


def new_branch(source: str) -> str:
    """Return a name that nobody else has, by which the merges of a source know their own branches."""
    return f"{_prefix(source)}{secrets.token_hex(8)}"


def _prefix(source: str) -> str:
    # Several sources may write one table: a merge must not clear away what another source's merge works on.
    return f"{PREFIX}{hashlib.sha256(source.encode()).hexdigest()[:8]}_"


def start_branch(table: Any, branch: str, snapshot_id: int | None) -> None:
    """Create a branch that stands where the table stood when the merge looked at it."""
    manage = table.manageSnapshots()
    # Of a table without a snapshot Iceberg makes an empty one for the branch.
    created = manage.createBranch(branch) if snapshot_id is None else manage.createBranch(branch, snapshot_id)
    created.commit()


def drop_left_over(table: Any, source: str) -> None:
    """Remove the branches of a source's merges that were killed."""
    left_over = [name for name in _refs(table) if name.startswith(_prefix(source))]
    if left_over:
        manage = table.manageSnapshots()
        for name in left_over:
            manage.removeBranch(name)
        manage.commit()
        table.refresh()


def _refs(table: Any) -> Iterator[str]:
    """Yield the names of a table's branches and tags."""
    names = table.refs().keySet().iterator()
    # Python's own iteration ends by an exception in Java, which pyspark takes for one that people must be told of: that cost
    # a hundred calls.
    while names.hasNext():
        yield names.next()


def refuse_moved(table: Any, snapshot_id: int | None, source_table: str) -> None:
    """Refuse to go on when the table is no longer the one that a branch began with.

    Iceberg looks no further than whether the branch follows the table. It would also do so when another merge had removed
    the branch and moved the table: a write to a branch that is gone makes it anew, from the table as it is then.

    Raises:
        MergeConflict: it has another snapshot.
    """
    current = table.currentSnapshot()
    found = current.snapshotId() if current is not None else None
    if found != snapshot_id:
        raise MergeConflict(
            "another commit came first",
            hint="Nothing was changed; the merge can be run again.",
            table=source_table,
            expected_snapshot=snapshot_id,
            found_snapshot=found,
        )


def publish(table: Any, branch: str) -> None:
    """Make the branch the table, and remove its name, in one commit.

    Iceberg refuses when the table has moved since the branch began.
    """
    table.manageSnapshots().fastForwardBranch(MAIN, branch).removeBranch(branch).commit()
