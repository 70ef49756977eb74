"""History of an Iceberg table since a cut, from its metadata: commits and columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cdc_lib.model.foreign import LakeCommit, Past
from cdc_lib.model.lake_table import MARKER_PROPERTY
from spark_jobs.iceberg.table_metadata import Snapshot, TableMetadata

MAX_COMMITS = 1000
"""Most commits that are read, from the current one back."""


def past_of(table: TableMetadata, snapshot_id: int, schema_id: int) -> Past:
    """Return the history of a table since a snapshot and a schema.

    Args:
        table: its metadata.
        snapshot_id: the current snapshot at that time.
        schema_id: the current schema at that time.
    """
    return Past(tuple(_commits(table, snapshot_id)), table.columns() or (), table.columns(schema_id))


def _commits(table: TableMetadata, until: int) -> Iterator[LakeCommit]:
    """Yield the commits from the current one back to ``until``, which is excluded, or to the oldest stored one."""
    for snapshot in islice(table.line(), MAX_COMMITS):
        if snapshot.id == until:
            return
        yield _commit(snapshot)


def _commit(snapshot: Snapshot) -> LakeCommit:
    # A new deletion vector repeats the rows that were deleted before.
    row_deletes = snapshot.count("added-position-deletes") - snapshot.count("removed-position-deletes")
    return LakeCommit(
        snapshot_id=snapshot.id,
        operation=snapshot.summary.get("operation", ""),
        marked=any(name.startswith(MARKER_PROPERTY) for name in snapshot.summary),
        at=snapshot.at,
        added=snapshot.count("added-records"),
        deleted=max(0, snapshot.count("deleted-records") + row_deletes),
    )
