"""Iceberg's statistics of a lake table: how many distinct values its key columns have, in a Puffin file beside the data.

Query engines order their joins by it. Iceberg reads the whole columns for it, so that it is done only when files came or went.
"""

from __future__ import annotations

from typing import Any

_CHANGES = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


def has_statistics(table: Any, columns: list[str]) -> bool:
    """Whether a table has statistics of these columns, and the same files as then.

    Args:
        table: Iceberg's own object.
        columns: their names.
    """
    wanted = {table.schema().caseInsensitiveFindField(name).fieldId() for name in columns}
    known = {file.snapshotId(): _fields(file) for file in table.statisticsFiles()}
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        if snapshot.snapshotId() in known:
            return bool(wanted <= known[snapshot.snapshotId()])
        summary = snapshot.summary()
        parent = snapshot.parentId()
        if parent is None or any((summary.get(name) or "0") != "0" for name in _CHANGES):
            return False
        snapshot = table.snapshot(parent)
    return False


def size_of(table: Any) -> int:
    """Return the bytes of the statistics of a table's current snapshot."""
    current = table.currentSnapshot().snapshotId()
    return sum(int(file.fileSizeInBytes()) for file in table.statisticsFiles() if file.snapshotId() == current)


def _fields(file: Any) -> set[int]:
    """Return the ids of the columns that a statistics file is about."""
    return {int(field) for blob in file.blobMetadata() for field in blob.fields()}
