"""What keeps an Iceberg table small and quick: files written again in key order, old snapshots and lost files removed.

Every step is a commit of its own, safe beside merges: Iceberg refuses to replace a file of which a merge has deleted rows
meanwhile, and a merge begins again when the table moved under it. None of these commits carries a marker: one that was read
before the rewrite and written after it would send the table back to batches that it holds already.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import MergeConflict
from cdc_lib.lake.expiry import LakeSnapshot, beside, expirable
from cdc_lib.model.lake_table import KEY_PROPERTY, MARKER_PROPERTY, ORDER, LakeName
from cdc_lib.model.lake_upkeep import Maintained
from spark_jobs.errors import is_missing, lacks_metadata, translate_errors
from spark_jobs.iceberg.branches import drop_left_over
from spark_jobs.iceberg.loading import load_table
from spark_jobs.iceberg.locations import TableLocations, place_of
from spark_jobs.iceberg.statistics import countable, has_statistics, size_of
from spark_jobs.sql import full_name, quoted, text_literal


class Upkeep:
    """Looks after one lake table.

    Args:
        session: a Spark session that no other thread uses meanwhile.
        name: the lake table.
        settings: what is kept and what is rewritten.
        places: where all tables of the catalog lie.
    """

    def __init__(
        self, session: SparkSession, name: LakeName, settings: MaintenanceConfig, places: TableLocations
    ) -> None:
        self._session = session
        self._name = name
        self._settings = settings
        self._places = places

    def run(self, wanted: Collection[int], now: datetime) -> Maintained:
        """Do all of it.

        Args:
            wanted: snapshots that cuts name, which stay.
            now: the time (UTC).

        Raises:
            MergeConflict: a merge came first, every time.
            StoreError: the storage gave no answer.
        """
        with translate_errors("maintain", str(self._name)):
            try:
                return self._run(wanted, now)
            except (Py4JError, PySparkException) as error:
                if is_missing(error):  # somebody dropped it since the last cut; the next merge says so
                    return Maintained(str(self._name), missing=True)
                raise

    def _run(self, wanted: Collection[int], now: datetime) -> Maintained:
        with self._unless_overtaken():
            drop_left_over(self._java())
            files = self._session.table(f"{full_name(self._name)}.data_files").count()
            rewritten = self.rewrite()
            counted = self._count()
            expired = self._expire(wanted, now - self._settings.keep_snapshots_for)
            in_the_way = self._places.in_the_way(place_of(self._session, self._name)) or ""
            orphans = 0 if in_the_way else self._remove_orphans(now - self._settings.keep_orphans_for)
        return Maintained(
            str(self._name),
            files,
            **rewritten,
            **counted,
            snapshots=expired,
            orphans=orphans,
            in_the_way=in_the_way,
            missing=False,
        )

    @contextmanager
    def _unless_overtaken(self) -> Iterator[None]:
        """Tell metadata that a merge removed meanwhile from metadata that is lost.

        Raises:
            MergeConflict: the table has changed since, so that a snapshot which was being read may have expired.
        """
        began = self._metadata()
        try:
            yield
        except (Py4JError, PySparkException) as error:
            if not lacks_metadata(error) or self._metadata() == began:
                raise
            raise MergeConflict(
                "a merge removed a snapshot that was being read", hint="Nothing is lost.", table=str(self._name)
            ) from error

    def _metadata(self) -> str:
        return str(self._java().operations().current().metadataFileLocation())

    def rewrite(self) -> dict[str, int]:
        """Write small files, and those with many deleted rows, again in key order; one commit, or none."""
        key = self._key() or ORDER
        order = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in key)
        options = (
            f"'min-input-files', '{self._settings.min_small_files}', "
            f"'delete-ratio-threshold', '{self._settings.max_deleted_ratio}'"
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
        heads = [row.snapshot_id for row in self._session.sql(f"SELECT snapshot_id FROM {table}.refs").collect()]
        shown = self._java().currentSnapshot()
        current = shown.snapshotId() if shown is not None else None
        ids = expirable(snapshots, current, beside(snapshots, current, heads) | set(wanted), before)
        if ids:
            listed = ", ".join(f"{one}L" for one in ids)
            self._call("expire_snapshots", f"older_than => TIMESTAMP '1970-01-02', snapshot_ids => array({listed})")
        return len(ids)

    def _remove_orphans(self, before: datetime) -> int:
        """Remove files below the table's folder that no snapshot names: of merges that were killed.

        Iceberg asks this table alone: a file of another table in the same folder would be lost to it.
        """
        arguments = f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}', prefix_listing => true"
        return len(self._call("remove_orphan_files", arguments))

    def _call(self, procedure: str, arguments: str) -> list[Row]:
        """Run one of Iceberg's procedures and return what it answers."""
        table = text_literal(".".join(map(quoted, (*self._name.namespace, self._name.name))))
        catalog = quoted(self._name.catalog)
        return self._session.sql(f"CALL {catalog}.system.{procedure}(table => {table}, {arguments})").collect()

    def _java(self) -> Any:
        return load_table(self._session, self._name)
