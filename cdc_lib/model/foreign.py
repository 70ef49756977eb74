"""What other writers did to a lake table since the last cut, and what was noticed of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.table_name import TableName

KEPT_COMMITS = 100
"""How many foreign commits a source remembers."""


@dataclass(frozen=True, slots=True)
class LakeField:
    """A column of a lake table by Iceberg's number of it, which stays the same under other names."""

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
        application: id of the Spark application that made it; empty for other engines.
        at: when it was made (UTC).
        added: rows that it added.
        deleted: rows that it deleted.
    """

    snapshot_id: int
    operation: str
    marked: bool
    application: str
    at: datetime
    added: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Past:
    """What happened to a lake table since a cut.

    Args:
        commits: those after the cut's snapshot, newest first; where older ones are expired, those that are left.
        fields: the columns now.
        fields_then: the columns when the cut was published; None where the table no longer knows them.
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
        at: when it was made (UTC).
        added: rows that it added.
        deleted: rows that it deleted.
        noticed_at: when a merge came upon it (UTC).
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
        rows = f"{self.added} rows added, {self.deleted} deleted"
        return f"{self.lake_table}: another writer's {self.operation} at {self.at:%Y-%m-%d %H:%M:%S} UTC: {rows}"


@dataclass(frozen=True, slots=True)
class ForeignCommits:
    """The foreign commits that merges of a source came upon, oldest first; the last hundred."""

    source: str
    commits: tuple[ForeignCommit, ...]
