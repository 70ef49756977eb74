"""How much a lake table needs maintenance, judged by its metadata alone: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.model.lake_upkeep import UpkeepNeed
from cdc_lib.model.pace import counted

FILE_BYTES = 48 * 1024**2
"""Smallest size of a file that is not small: three quarters of Iceberg's target size."""

_SNAPSHOTS = 100
"""So many old snapshots count as much as one full limit of small files: they cost storage, and no reader time."""


def surplus_files(summary: Mapping[str, str]) -> int:
    """Return how many data files a table has above the number that its size needs.

    Args:
        summary: of the current snapshot.
    """
    needed = -(-_count(summary, "total-files-size") // FILE_BYTES)
    return max(0, _count(summary, "total-data-files") - needed)


def need_of(
    summary: Mapping[str, str],
    committed: Sequence[datetime],
    settings: MaintenanceConfig,
    now: datetime,
    *,
    other_layout: bool = False,
) -> UpkeepNeed:
    """Return what waits in a table for its maintenance.

    Args:
        summary: of the current snapshot; empty for a table without one.
        committed: when each snapshot was committed; the current one among them.
        settings: of the maintenance.
        now: the time (UTC).
        other_layout: whether the source file gives the table another layout than it has.
    """
    records = _count(summary, "total-records")
    deleted = _count(summary, "total-position-deletes") / records if records else 0.0
    before = now - settings.keep_snapshots_for
    old = sum(at < before for at in sorted(committed)[:-1])  # the current one stays
    return UpkeepNeed(surplus_files(summary), min(deleted, 1.0), old, other_layout)


def pressing(need: UpkeepNeed, settings: MaintenanceConfig) -> tuple[bool, float]:
    """Return a key that sorts tables by need, least first: another layout, then how often the limits are exceeded together."""
    files = need.small_files / settings.min_small_files
    return need.other_layout, files + need.deleted_ratio / settings.max_deleted_ratio + need.old_snapshots / _SNAPSHOTS


def waits_for(need: UpkeepNeed, settings: MaintenanceConfig) -> str:
    """Say for what a table waits, as far as it is above the limits; empty if the next maintenance changes nothing."""
    waiting = (
        "another layout" if need.other_layout else "",
        counted(need.small_files, "small file") if need.small_files >= settings.min_small_files else "",
        f"{need.deleted_ratio:.0%} of the rows deleted" if need.deleted_ratio >= settings.max_deleted_ratio else "",
        counted(need.old_snapshots, "old snapshot") if need.old_snapshots else "",
    )
    return ", ".join(filter(None, waiting))


def _count(summary: Mapping[str, str], name: str) -> int:
    return int(summary.get(name) or 0)
