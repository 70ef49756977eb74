"""Iceberg's statistics of a lake table: the number of distinct values of its key columns, in a Puffin file.

Query engines order their joins by it. Iceberg reads the whole columns for it, so it is computed only after many rows changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

VALID_PART = 10
"""Statistics are valid while at most one of this number of rows was added or deleted."""

_CHANGES = ("added-records", "added-position-deletes")


def countable(columns: Iterable[str]) -> list[str]:
    """Return the columns that Iceberg can count: dots and backticks in names have a special meaning for it."""
    return [name for name in columns if not {".", "`"} & set(name)]


def has_statistics(table: Any, columns: list[str]) -> bool:
    """Whether a table has valid statistics of these columns.

    Args:
        table: Iceberg's Java object.
        columns: names of the columns.
    """
    fields = {table.schema().caseInsensitiveFindField(name).fieldId() for name in columns}
    known = {file.snapshotId(): _fields(file) for file in table.statisticsFiles()}
    snapshot, changed = table.currentSnapshot(), 0
    rows = int(snapshot.summary().get("total-records") or 0)
    while snapshot is not None:
        if snapshot.snapshotId() in known:
            return bool(fields <= known[snapshot.snapshotId()]) and changed * VALID_PART <= rows
        if snapshot.operation() != "replace":  # a rewrite of files
            summary = snapshot.summary()
            changed += sum(int(summary.get(name) or 0) for name in _CHANGES)
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return False


def size_of(table: Any) -> int:
    """Return the size in bytes of the statistics of a table's current snapshot."""
    current = table.currentSnapshot().snapshotId()
    return sum(int(file.fileSizeInBytes()) for file in table.statisticsFiles() if file.snapshotId() == current)


def _fields(file: Any) -> set[int]:
    """Return the field ids of a statistics file."""
    return {int(field) for blob in file.blobMetadata() for field in blob.fields()}
