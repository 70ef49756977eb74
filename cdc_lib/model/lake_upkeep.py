"""What the maintenance of a lake table has to do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Maintained:
    """What the maintenance of one table did.

    Args:
        table: full name in the catalog.
        files: data files before.
        rewritten: data files that were rewritten.
        added: new data files that replace them.
        deletes: delete files removed with them.
        bytes: size of the rewritten files.
        snapshots: expired snapshots.
        orphans: orphan files removed.
        statistics: columns whose statistics were computed again, because many rows were added or deleted.
        statistics_bytes: size of the statistics file.
        in_the_way: why orphan files were not removed; empty if the removal ran.
        missing: whether the table does not exist, so that nothing was done.
        laid_out: whether the table got another layout.
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
    laid_out: bool = False


@dataclass(frozen=True, slots=True)
class UpkeepNeed:
    """What waits in a lake table for its maintenance.

    Args:
        small_files: data files above the number that its size needs.
        deleted_ratio: ratio of the rows in data files that are deleted.
        old_snapshots: snapshots that are older than ``maintenance.keep_snapshots_for``; cuts may still name some.
        other_layout: whether the source file gives it another layout than it has.
    """

    small_files: int
    deleted_ratio: float
    old_snapshots: int
    other_layout: bool = False


@dataclass(frozen=True, slots=True)
class Tidied:
    """Maintenance by a merge after its commit: expired snapshots, rewritten and new data files."""

    snapshots: int = 0
    rewritten: int = 0
    added: int = 0
