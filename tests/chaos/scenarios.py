"""The optional faults of a run, besides kills, crashes, cut connections and repeated tasks; the seed chooses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True)
class Scenarios:
    """The optional scenarios of a run.

    Args:
        prepared: XA transactions, which are prepared in one window and decided in another.
        rewinds: the drain cursor is moved back sometimes.
        quarantine: faulty tables are quarantined, and resumed.
        collections: batches are removed as soon as no cursor needs them.
        failovers: failovers: planned, after a crash, and with lost transactions.
        reselects: merges that lag read the source's current rows.
        resnapshots: new snapshots of single tables are requested.
        upkeep: lake tables are maintained, and their old snapshots expire.
        statements: columns are dropped and renamed, tables emptied, swapped, dropped and made again.
        images: row images in the binlog are partial.
        backfills: archived batches are merged again.
        foreign: foreign writers change lake tables and delete batches.
        torn: closed binlog files are truncated, and restored.
        rotations: the commits of long statements rotate binlog files.
        clocks: the servers' clocks are minutes apart.
        properties: foreign writers give lake tables properties.
        lost: files of lake tables are lost.
        stopped: drains are stopped while they hold a lock of a store in a folder.
        ahead: clocks of workers that merge are minutes ahead.
        copies: copies of the source have other catalogs over the same warehouse.
        reverts: the server is put back to a machine snapshot.
        erasures: rows that the source deleted are erased.
    """

    prepared: bool
    rewinds: bool
    quarantine: bool
    collections: bool
    failovers: bool
    reselects: bool
    resnapshots: bool
    upkeep: bool
    statements: bool
    images: bool
    backfills: bool
    foreign: bool
    torn: bool
    rotations: bool
    clocks: bool
    properties: bool
    lost: bool
    stopped: bool
    ahead: bool
    copies: bool
    reverts: bool
    erasures: bool

    @classmethod
    def of(cls, seed: int) -> Self:
        """Return the scenarios of a seed: each of its last bits turns one off, so that 0 has all."""
        return cls(*(not seed >> bit & 1 for bit in range(len(fields(cls)))))

    @classmethod
    def every(cls) -> Self:
        """Return all of them."""
        return cls.of(0)

    def __str__(self) -> str:
        return ", ".join(field.name for field in fields(self) if getattr(self, field.name)) or "none"
