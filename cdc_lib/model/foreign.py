"""Commits of other writers to a lake table since the last cut."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName

KEPT_COMMITS = 100
"""How many foreign commits a source remembers."""


@dataclass(frozen=True, slots=True)
class LakeField:
    """A column of a lake table with its Iceberg field id, which survives a rename."""

    id: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class LakeCommit:
    """One snapshot in the history of a lake table.

    Args:
        snapshot_id: of the snapshot.
        operation: ``append``, ``overwrite``, ``delete`` or ``replace``.
        marked: whether it holds a marker of this or another source.
        at: commit time (UTC).
        added: rows that it added.
        deleted: rows that it deleted.
    """

    snapshot_id: int
    operation: str
    marked: bool
    at: datetime
    added: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a lake table since a cut.

    Args:
        commits: commits after the cut's snapshot, newest first; without those that are expired.
        fields: the columns now.
        fields_then: the columns when the cut was published; None if the table metadata no longer has them.
    """

    commits: tuple[LakeCommit, ...]
    fields: tuple[LakeField, ...]
    fields_then: tuple[LakeField, ...] | None


@dataclass(frozen=True, slots=True)
class ForeignCommit:
    """A commit of another writer that added or deleted rows of a lake table.

    Args:
        tables: ``database.table`` of the source tables whose rows go there.
        lake_table: its full name.
        snapshot_id: of the commit.
        operation: as Iceberg names it.
        at: commit time (UTC).
        added: rows that it added.
        deleted: rows that it deleted.
        noticed_at: when a merge found it (UTC).
    """

    tables: tuple[TableName, ...]
    lake_table: str
    snapshot_id: int
    operation: str
    at: datetime
    added: int
    deleted: int
    noticed_at: datetime

    def __str__(self) -> str:
        """For people."""
        rows = f"{counted(self.added, 'row')} added, {self.deleted:,} deleted"
        return f"{self.lake_table}: another writer's {self.operation} at {self.at:%Y-%m-%d %H:%M:%S} UTC: {rows}"


@dataclass(frozen=True, slots=True)
class ForeignCommits:
    """The last hundred foreign commits that merges of a source found, oldest first."""

    source: str
    commits: tuple[ForeignCommit, ...]
