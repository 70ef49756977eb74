"""Iceberg's statistics of a lake table: the number of distinct values of its key columns, in a Puffin file.

Query engines order their joins by it. Iceberg reads the whole columns for it, so it is computed only after many rows changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from spark_jobs.iceberg.table_metadata import TableMetadata

VALID_PART = 10
"""Statistics are valid while at most one of this number of rows was added or deleted."""

_CHANGES = ("added-records", "added-position-deletes")


def countable(columns: Iterable[str]) -> list[str]:
    """Return the columns that Iceberg can count: dots and backticks in names have a special meaning for it."""
    return [name for name in columns if not {".", "`"} & set(name)]


def has_statistics(table: TableMetadata, columns: Collection[str]) -> bool:
    """Whether a table has valid statistics of these columns.

    Args:
        table: its metadata.
        columns: names of the columns.
    """
    wanted = {name.lower() for name in columns}
    fields = {one.id for one in table.columns() or () if one.name.lower() in wanted}
    known = {snapshot: of for snapshot, of, _ in table.statistics()}
    rows = table.current.count("total-records") if table.current is not None else 0
    changed = 0
    for snapshot in table.line():
        if snapshot.id in known:
            return fields <= known[snapshot.id] and changed * VALID_PART <= rows
        if snapshot.summary.get("operation") != "replace":  # a rewrite of files
            changed += sum(map(snapshot.count, _CHANGES))
    return False


def size_of(table: TableMetadata) -> int:
    """Return the size in bytes of the statistics of a table's current snapshot."""
    current = table.current
    return sum(size for snapshot, _, size in table.statistics() if current is not None and snapshot == current.id)
