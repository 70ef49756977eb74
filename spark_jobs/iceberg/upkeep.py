"""What merges do for their tables so that the N-th costs what the first did: old snapshots go, and small files become one.

The daily maintenance does more of it, and removes lost files. Here the table's metadata alone is looked at, in one call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.expiry import LakeSnapshot, beside, thin
from cdc_lib.model.lake_table import MARKER_PROPERTY, LakeName
from cdc_lib.model.lake_upkeep import Tidied
from spark_jobs.errors import translate_errors
from spark_jobs.iceberg.branches import MAIN, forget
from spark_jobs.iceberg.loading import load_table
from spark_jobs.iceberg.locations import TableLocations
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.runtime.java_classes import java_classes

THIN_AT_ONCE = 20
"""Fewer snapshots are not worth a commit."""

SMALL_FILES = 40
"""So many files more than the table's bytes fill cost a merge more, each time, than it takes to write them as one."""

FILE_BYTES = 48 * 1024**2
"""A file of this size is not small: three quarters of what Iceberg aims at."""

READERS_NEED = timedelta(hours=1)
"""Files of younger snapshots stay: a query that began with one may still read them."""


def tidy(
    session: SparkSession,
    name: LakeName,
    settings: MaintenanceConfig,
    named_by_cuts: Callable[[], Collection[int]],
    now: datetime,
) -> Tidied:
    """Do what is due for one lake table, most often nothing.

    Args:
        session: a Spark session that no other thread uses meanwhile.
        name: the lake table.
        settings: of the maintenance.
        named_by_cuts: returns the snapshots that cuts name; asked when snapshots may go.
        now: the time (UTC).

    Raises:
        MergeConflict: another commit came first; it is done after a later merge.
        StoreError: the storage gives no answer.
    """
    with translate_errors("tidy", str(name)):
        table = load_table(session, name)
        rewritten = added = 0
        if has_small_files(table.currentSnapshot()):
            # Deleted rows of large files wait for the maintenance, and so do lost files.
            small = settings.model_copy(update={"max_deleted_ratio": 1.0})
            done = Upkeep(session, name, small, TableLocations(())).rewrite()
            rewritten, added = done["rewritten"], done["added"]
            table.refresh()
        return Tidied(_thin(session, table, named_by_cuts, now), rewritten, added)


def has_small_files(snapshot: Any) -> bool:
    """Whether a table has many more files than its bytes fill."""
    if snapshot is None:
        return False
    summary = snapshot.summary()
    files, size = (int(summary.get(key) or 0) for key in ("total-data-files", "total-files-size"))
    return files - -(-size // FILE_BYTES) >= SMALL_FILES


def _thin(session: SparkSession, table: Any, named_by_cuts: Callable[[], Collection[int]], now: datetime) -> int:
    metadata = _metadata(session, table)
    snapshots = [
        LakeSnapshot(
            one["snapshot-id"],
            one.get("parent-snapshot-id"),
            datetime.fromtimestamp(one["timestamp-ms"] / 1000, UTC),
            any(key.startswith(MARKER_PROPERTY) for key in one.get("summary", {})),
        )
        for one in metadata.get("snapshots", [])
    ]
    current = metadata.get("current-snapshot-id")
    heads = [ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items() if name != MAIN]
    wanted = beside(snapshots, current, heads)
    if len(thin(snapshots, current, wanted, (), now)) < THIN_AT_ONCE:
        return 0
    gone = thin(snapshots, current, wanted, named_by_cuts(), now)
    if len(gone) < THIN_AT_ONCE:
        return 0
    old = {one.id for one in snapshots if now - one.at > READERS_NEED}
    young = [one for one in gone if one not in old]
    forget(table, table, young)
    forget(table, table, [one for one in gone if one in old], files=True)
    return len(gone)


def _metadata(session: SparkSession, table: Any) -> dict[str, Any]:
    """Return all that a table's metadata file says; one call to Java, where each snapshot's summary would be some."""
    to_json = java_classes(session).static("org.apache.iceberg.TableMetadataParser", "toJson")
    found: dict[str, Any] = json.loads(to_json(table.operations().current()))
    return found
