"""Iceberg's statistics of a lake table: how many distinct values its key columns have, in a Puffin file beside the data.

Query engines order their joins by it. Iceberg reads the whole columns for it, so that it is done only when a good part of the
rows changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PART = 10
"""What was counted counts for as long as less than one of so many rows came or went."""

_CHANGES = ("added-records", "added-position-deletes")


def countable(columns: Iterable[str]) -> list[str]:
    """Return the columns that Iceberg can count: it takes a dot or a backtick in a name for a sign of its own."""
    return [name for name in columns if not {".", "`"} & set(name)]


def has_statistics(table: Any, columns: list[str]) -> bool:
    """Whether a table has statistics of these columns, of much the same rows as now.

    Args:
        table: Iceberg's own object.
        columns: their names.
    """
    wanted = {table.schema().caseInsensitiveFindField(name).fieldId() for name in columns}
    known = {file.snapshotId(): _fields(file) for file in table.statisticsFiles()}
    snapshot, changed = table.currentSnapshot(), 0
    rows = int(snapshot.summary().get("total-records") or 0)
    while snapshot is not None:
        if snapshot.snapshotId() in known:
            return bool(wanted <= known[snapshot.snapshotId()]) and changed * PART <= rows
        if snapshot.operation() != "replace":  # files that were only written again
            summary = snapshot.summary()
            changed += sum(int(summary.get(name) or 0) for name in _CHANGES)
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return False


def size_of(table: Any) -> int:
    """Return the bytes of the statistics of a table's current snapshot."""
    current = table.currentSnapshot().snapshotId()
    return sum(int(file.fileSizeInBytes()) for file in table.statisticsFiles() if file.snapshotId() == current)


def _fields(file: Any) -> set[int]:
    """Return the ids of the columns that a statistics file is about."""
    return {int(field) for blob in file.blobMetadata() for field in blob.fields()}
