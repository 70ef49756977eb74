"""Branches of an Iceberg table, by Iceberg's own objects: each function is one commit to the catalog."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

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
    table.manageSnapshots().createBranch(branch, snapshot_id).commit()


def drop_left_over(table: Any, source: str) -> None:
    """Remove the branches of a source's merges that were killed."""
    left_over = [name for name in dict(table.refs()) if name.startswith(_prefix(source))]
    if left_over:
        manage = table.manageSnapshots()
        for name in left_over:
            manage.removeBranch(name)
        manage.commit()
        table.refresh()


def publish(table: Any, branch: str) -> None:
    """Make the branch the table, and remove its name, in one commit.

    Iceberg refuses when the table has moved since the branch began.
    """
    table.manageSnapshots().fastForwardBranch(MAIN, branch).removeBranch(branch).commit()
