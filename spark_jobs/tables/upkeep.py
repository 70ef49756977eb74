"""What keeps an Iceberg table small and quick: files written anew in key order, old snapshots and lost files removed.

Every step is a commit of its own, safe beside merges: Iceberg refuses to replace a file of which a merge has deleted rows
meanwhile, and a merge begins again when the table moved under it. None of these commits carries a marker: one that was read
before the rewrite and written after it would send the table back to batches that it holds already.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Row, SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.merge.expiry import LakeSnapshot, expirable
from cdc_lib.model.lake import KEY_PROPERTY, MARKER_PROPERTY, ORDER, LakeName
from spark_jobs.sql import full_name, quoted, text_literal
from spark_jobs.tables.faults import told
from spark_jobs.tables.statistics import countable, has_statistics, size_of


@dataclass(frozen=True, slots=True)
class Kept:
    """What the maintenance of one table did.

    Args:
        table: full name in the catalog.
        files: data files before.
        rewritten: of these, written anew.
        added: files that they became.
        deletes: files of deleted rows that went with them.
        bytes: of the files that were rewritten.
        snapshots: snapshots removed.
        orphans: files removed that no snapshot named.
        statistics: columns that were counted anew, because many rows had come or gone since the last time.
        statistics_bytes: of the file that says it.
    """

    table: str
    files: int = 0
    rewritten: int = 0
    added: int = 0
    deletes: int = 0
    bytes: int = 0
    snapshots: int = 0
    orphans: int = 0
    statistics: int = 0
    statistics_bytes: int = 0


class Upkeep:
    """Looks after one lake table.

    Args:
        session: a Spark session that no other thread uses meanwhile.
        name: the lake table.
        settings: what is kept and what is rewritten.
    """

    def __init__(self, session: SparkSession, name: LakeName, settings: MaintenanceConfig) -> None:
        self._session = session
        self._name = name
        self._settings = settings

    def run(self, wanted: Collection[int], now: datetime) -> Kept:
        """Do all of it.

        Args:
            wanted: snapshots that cuts name, which stay.
            now: the time (UTC).

        Raises:
            MergeConflict: a merge came first, every time.
            StoreError: the storage gave no answer.
        """
        with told("maintain", str(self._name)):
            files = self._session.table(f"{full_name(self._name)}.data_files").count()
            rewritten = self._rewrite()
            counted = self._count()
            expired = self._expire(wanted, now - self._settings.keep_snapshots_for)
            orphans = self._remove_orphans(now - self._settings.keep_orphans_for)
        return Kept(str(self._name), files, **rewritten, **counted, snapshots=expired, orphans=orphans)

    def _rewrite(self) -> dict[str, int]:
        """Write small files, and those with many deleted rows, anew in key order; one commit, or none."""
        key = self._key() or ORDER
        order = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in key)
        options = (
            f"'min-input-files', '{self._settings.rewrite_small}', "
            f"'delete-ratio-threshold', '{self._settings.rewrite_deleted}'"
        )
        [done] = self._call(
            "rewrite_data_files", f"strategy => 'sort', sort_order => {text_literal(order)}, options => map({options})"
        )
        return {
            "rewritten": done.rewritten_data_files_count,
            "added": done.added_data_files_count,
            "deletes": done.removed_delete_files_count,
            "bytes": done.rewritten_bytes_count,
        }

    def _count(self) -> dict[str, int]:
        """Count the distinct values of the key's columns, where many rows came or went since the last time."""
        key, table = countable(self._key()), self._java()
        if not key or table.currentSnapshot() is None or has_statistics(table, key):
            return {}
        listed = ", ".join(map(text_literal, key))
        done = self._call("compute_table_stats", f"columns => array({listed})")
        return {"statistics": len(key), "statistics_bytes": size_of(self._java())} if done else {}

    def _key(self) -> list[str]:
        found: list[str] = json.loads(self._java().properties().get(KEY_PROPERTY) or "[]")
        return found

    def _expire(self, wanted: Collection[int], before: datetime) -> int:
        """Remove snapshots by their numbers, none by Iceberg's own rules."""
        table = full_name(self._name)
        rows = self._session.sql(
            f"SELECT snapshot_id, parent_id, committed_at, summary FROM {table}.snapshots"
        ).collect()
        snapshots = [
            LakeSnapshot(
                row.snapshot_id,
                row.parent_id,
                row.committed_at.astimezone(before.tzinfo),
                any(key.startswith(MARKER_PROPERTY) for key in row.summary),
            )
            for row in rows
        ]
        named = {row.snapshot_id for row in self._session.sql(f"SELECT snapshot_id FROM {table}.refs").collect()}
        current = self._java().currentSnapshot()
        ids = expirable(snapshots, current.snapshotId() if current is not None else None, named | set(wanted), before)
        if ids:
            listed = ", ".join(f"{one}L" for one in ids)
            self._call("expire_snapshots", f"older_than => TIMESTAMP '1970-01-02', snapshot_ids => array({listed})")
        return len(ids)

    def _remove_orphans(self, before: datetime) -> int:
        """Remove files below the table's folder that no snapshot names: of merges that were killed."""
        arguments = f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}', prefix_listing => true"
        return len(self._call("remove_orphan_files", arguments))

    def _call(self, procedure: str, arguments: str) -> list[Row]:
        """Run one of Iceberg's procedures and return what it answers."""
        table = text_literal(".".join(map(quoted, (*self._name.namespace, self._name.name))))
        catalog = quoted(self._name.catalog)
        return self._session.sql(f"CALL {catalog}.system.{procedure}(table => {table}, {arguments})").collect()

    def _java(self) -> Any:
        session: Any = self._session
        load = session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable  # noqa: SLF001
        return load(session._jsparkSession, full_name(self._name))  # noqa: SLF001
