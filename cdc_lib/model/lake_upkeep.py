"""What was done to keep a lake table small and quick to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Maintained:
    """What the maintenance of one table did.

    Args:
        table: full name in the catalog.
        files: data files before.
        rewritten: of these, written again.
        added: files that they became.
        deletes: files of deleted rows that went with them.
        bytes: of the files that were rewritten.
        snapshots: snapshots removed.
        orphans: files removed that no snapshot named.
        statistics: columns that were counted again, because many rows had come or gone since the last time.
        statistics_bytes: of the file that says it.
        in_the_way: why lost files were not looked for; empty where they were.
        missing: whether the table does not exist, so that nothing was done.
    """

    table: str
    files: int = 0
    rewritten: int = 0
    added: int = 0
    deletes: int = 0
    bytes: int = 0
    snapshots: int = 0
    orphans: int = 0
    statistics: int = 0
    statistics_bytes: int = 0
    in_the_way: str = ""
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Tidied:
    """What a merge did after its commit: how many snapshots were removed, and how many files became how many."""

    snapshots: int = 0
    rewritten: int = 0
    added: int = 0
