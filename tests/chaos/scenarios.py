"""What else happens in a run, beside kills, crashes, cut connections and repeated tasks; a seed has some of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True)
class Scenarios:
    """Which of the further scenarios a run has.

    Args:
        prepared: XA transactions, which are prepared in one window and decided in another.
        rewinds: the drain cursor is moved back now and then.
        quarantine: tables at fault are quarantined, and released.
        collections: batches are removed as soon as nobody needs them.
        switches: the standby takes over: in good order, after a crash, and without what it never received.
        reselects: merges that lag read the source's current rows.
        again: somebody asks for new snapshots of single tables.
        upkeep: lake tables are looked after, and their old snapshots go.
        statements: columns are dropped and renamed, tables emptied, swapped, dropped and made again.
        images: rows in the binlog have not all columns.
        backfills: archived batches are merged again.
        foreign: others change lake tables and delete batches.
        torn: closed binlog files lose their end, and get it back.
        rotations: statements run long, and their commits rotate binlog files.
        clocks: the servers' clocks are minutes apart.
    """

    prepared: bool
    rewinds: bool
    quarantine: bool
    collections: bool
    switches: bool
    reselects: bool
    anew: bool
    upkeep: bool
    statements: bool
    images: bool
    backfills: bool
    foreign: bool
    torn: bool
    rotations: bool
    clocks: bool

    @classmethod
    def of(cls, seed: int) -> Self:
        """Return those of a seed: its last fifteen bits say no to one each, so that 0 has all of them."""
        return cls(*(not seed >> bit & 1 for bit in range(len(fields(cls)))))

    @classmethod
    def every(cls) -> Self:
        """Return all of them."""
        return cls.of(0)

    def __str__(self) -> str:
        return ", ".join(one.name for one in fields(self) if getattr(self, one.name)) or "none"
