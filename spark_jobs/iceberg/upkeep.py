"""Maintenance after a merge, so that every merge costs the same: expires old snapshots and compacts small files.

The daily maintenance does more, and removes orphan files. Here only the table's metadata is read, in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.expiry import LakeSnapshot, branch_snapshots, thin
from cdc_lib.lake.upkeep_need import surplus_files
from cdc_lib.model.lake_table import MARKER_PROPERTY, LakeName
from cdc_lib.model.lake_upkeep import Tidied
from spark_jobs.iceberg.loading import metadata_of
from spark_jobs.iceberg.locations import TableLocations
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.iceberg.table_metadata import Snapshot

MAIN = "main"
"""The branch that readers see."""

THIN_AT_ONCE = 20
"""Fewer snapshots are not worth a commit."""

SMALL_FILES = 40
"""From this number of surplus small files on, they cost each merge more than compaction does."""

READERS_NEED = timedelta(hours=1)
"""Files of younger snapshots are kept: a running query may still read them."""


def tidy(
    session: SparkSession,
    name: LakeName,
    table: Any,
    settings: MaintenanceConfig,
    named_by_cuts: Callable[[], Collection[int]],
    now: datetime,
) -> Tidied:
    """Do the maintenance that is due for one lake table, usually nothing.

    Args:
        session: a Spark session that no other thread uses.
        name: the lake table.
        table: Iceberg's Java object of it.
        settings: of the maintenance.
        named_by_cuts: returns the snapshots that cuts name; called only if snapshots may be expired.
        now: the time (UTC).

    Raises:
        MergeConflict: another commit came first; a later merge does it.
        StoreError: the storage does not answer.
    """
    rewritten = added = 0
    if has_small_files(metadata_of(session, table).current):
        # Deleted rows of large files, and orphan files, wait for the daily maintenance.
        small = settings.model_copy(update={"max_deleted_ratio": 1.0})
        done = Upkeep(session, name, small, TableLocations(())).rewrite()
        rewritten, added = done["rewritten"], done["added"]
        table.refresh()
    return Tidied(_thin(session, table, named_by_cuts, now), rewritten, added)


def has_small_files(snapshot: Snapshot | None) -> bool:
    """Whether a table has many more files than its size needs."""
    return snapshot is not None and surplus_files(snapshot.summary) >= SMALL_FILES


def _thin(session: SparkSession, table: Any, named_by_cuts: Callable[[], Collection[int]], now: datetime) -> int:
    metadata = metadata_of(session, table)
    snapshots = [
        LakeSnapshot(one.id, one.parent, one.at, any(key.startswith(MARKER_PROPERTY) for key in one.summary))
        for one in metadata.snapshots.values()
    ]
    current = metadata.current.id if metadata.current is not None else None
    heads = [head for name, head in metadata.heads.items() if name != MAIN]
    referenced = branch_snapshots(snapshots, current, heads)
    if len(thin(snapshots, current, referenced, (), now)) < THIN_AT_ONCE:
        return 0
    expired = thin(snapshots, current, referenced, named_by_cuts(), now)
    if len(expired) < THIN_AT_ONCE:
        return 0
    old = {one.id for one in snapshots if now - one.at > READERS_NEED}
    young = [one for one in expired if one not in old]
    _expire(table, young)
    _expire(table, [one for one in expired if one in old], files=True)
    return len(expired)


def _expire(table: Any, snapshots: Collection[int], *, files: bool = False) -> None:
    """Expire snapshots of a table, if the table allows that.

    Args:
        table: Iceberg's Java object.
        snapshots: their IDs.
        files: whether to remove files that only they reference.
    """
    if not snapshots or str(table.properties().get("gc.enabled")).lower() == "false":
        return
    expiry = table.expireSnapshots().expireOlderThan(0).cleanExpiredFiles(files)
    for snapshot in snapshots:
        expiry = expiry.expireSnapshotId(snapshot)
    expiry.commit()
