"""Maintenance of an Iceberg table: rewrites files in key order, expires snapshots and removes orphan files.

Every step is a separate commit, and safe while merges run: Iceberg refuses to replace a file from which a merge has deleted
rows in between, and a merge starts again if the table changed. These commits have no marker: a marker that was read before the
rewrite and written after it could be older than the table's rows.
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
from cdc_lib.lake.expiry import LakeSnapshot, branch_snapshots, expirable
from cdc_lib.lake.layout import LayoutChange, change_of_layout, fitted
from cdc_lib.model.lake_table import KEY_PROPERTY, MARKER_PROPERTY, ORDER, LakeColumn, LakeName
from cdc_lib.model.lake_upkeep import Maintained
from cdc_lib.model.layout import LAYOUT_PROPERTY, Layout
from cdc_lib.model.lexer import quoted
from cdc_lib.model.table_mode import IS_CURRENT
from cdc_lib.store.clock import refuse_later_commit
from spark_jobs.errors import is_missing, lacks_metadata, translate_errors
from spark_jobs.iceberg.ddl import set_sql
from spark_jobs.iceberg.layout_change import change_sql
from spark_jobs.iceberg.loading import load_metadata, load_table, metadata_of
from spark_jobs.iceberg.locations import TableLocations, existing_location, other_table_in
from spark_jobs.iceberg.statistics import countable, has_statistics, size_of
from spark_jobs.runtime.session import java_now
from spark_jobs.sql import full_name, plain_literal

PARQUET = "parquet"
FILE_FORMATS = ("write.format.default", "write.delete.format.default")
"""Table properties: the formats of new data and delete files, which somebody else may have set."""


class Upkeep:
    """Maintains one lake table.

    Args:
        session: a Spark session that no other thread uses.
        name: the lake table.
        settings: of the maintenance.
        locations: locations of all tables of the catalog.
        layout: of the table in the source file; None to keep the table's own.
    """

    def __init__(
        self,
        session: SparkSession,
        name: LakeName,
        settings: MaintenanceConfig,
        locations: TableLocations,
        layout: Layout | None = None,
    ) -> None:
        self._session = session
        self._name = name
        self._settings = settings
        self._locations = locations
        self._layout = layout

    def run(self, named: Collection[int], now: datetime) -> Maintained:
        """Do all maintenance steps.

        Args:
            named: snapshots that cuts name, which are kept.
            now: the time (UTC).

        Raises:
            MergeConflict: a merge committed first in every attempt.
            StoreError: the storage did not answer.
        """
        with translate_errors("maintain", lake_table=str(self._name)):
            try:
                return self._run(named, now)
            except (Py4JError, PySparkException) as error:
                if is_missing(error):  # it was dropped since the last cut; the next merge reports it
                    return Maintained(str(self._name), missing=True)
                raise

    def _run(self, named: Collection[int], now: datetime) -> Maintained:
        java = self._java()
        refuse_later_commit(metadata_of(self._session, java).updated, java_now(self._session), str(self._name))
        with self._unless_overtaken():
            files = self._session.table(f"{full_name(self._name)}.data_files").count()
            change = self._begin_change()
            rewritten = self.rewrite(change)
            if change is not None:
                self._session.sql(set_sql(self._name, {LAYOUT_PROPERTY: change.to.to_json()}))
            counted = self._count()
            kept = self._kept_by_property()
            expired = 0 if kept else self._expire(named, now - self._settings.keep_snapshots_for)
            in_the_way = (
                kept or self._locations.in_the_way(existing_location(self._session, self._name)) or self._other_table()
            )
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
            laid_out=change is not None,
        )

    def _begin_change(self) -> LayoutChange | None:
        """Give the table the layout of the source file, for all files that are written from now on.

        Every step may be repeated. The table's own property is set when all files have the layout.
        """
        if self._layout is None:
            return None
        columns = [LakeColumn(*column) for column in self._session.table(full_name(self._name)).dtypes]
        wanted = fitted(self._layout, columns, str(self._name))
        change = change_of_layout(self._applied(), wanted, str(self._name))
        if change is not None:
            partitioned = any(column.name == IS_CURRENT for column in columns)
            for statement in change_sql(self._session, self._name, change, self._key(), scd2=partitioned):
                self._session.sql(statement)
        return change

    @contextmanager
    def _unless_overtaken(self) -> Iterator[None]:
        """Raise MergeConflict if missing metadata was removed by a merge, and was not lost.

        Raises:
            MergeConflict: the table has changed, so a snapshot that was being read may have expired.
        """
        began = self._metadata()
        try:
            yield
        except (Py4JError, PySparkException) as error:
            if not lacks_metadata(error) or self._metadata() == began:
                raise
            raise MergeConflict(
                "a merge removed a snapshot that was being read", hint="Nothing is lost.", lake_table=str(self._name)
            ) from error

    def _metadata(self) -> str:
        return str(self._java().operations().current().metadataFileLocation())

    def rewrite(self, change: LayoutChange | None = None) -> dict[str, int]:
        """Rewrite small files, and files with many deleted rows, in the table's order; in one commit, or none.

        Args:
            change: of the layout, which may need all files rewritten.
        """
        layout = self._applied() if change is None else change.to
        order = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in self._key() or ORDER)
        # Without an argument it is the table's own order, which follows renames of columns.
        by = "" if layout.sort_by else f"sort_order => {plain_literal(order)}, "
        has_others = self._has_other_files()
        everything = (change is not None and change.rewrites) or has_others
        options = (
            # No delete of another format is about files that are newer than it.
            f"'use-starting-sequence-number', '{str(not has_others).lower()}', "
            f"'min-input-files', '{self._settings.min_small_files}', "
            f"'delete-ratio-threshold', '{self._settings.max_deleted_ratio}', "
            f"'rewrite-all', '{str(everything).lower()}'"
        )
        [done] = self._call("rewrite_data_files", f"strategy => 'sort', {by}options => map({options})")
        return {
            "rewritten": done.rewritten_data_files_count,
            "added": done.added_data_files_count,
            "deletes": done.removed_delete_files_count,
            "bytes": done.rewritten_bytes_count,
        }

    def _has_other_files(self) -> bool:
        """Whether somebody gave the table other file formats than Parquet, which alone is read without Spark; it is undone."""
        properties = load_metadata(self._session, self._name).properties
        if foreign := [name for name in FILE_FORMATS if properties.get(name, PARQUET).lower() != PARQUET]:
            self._session.sql(set_sql(self._name, dict.fromkeys(foreign, PARQUET)))
        files = self._session.table(f"{full_name(self._name)}.files")
        return bool(foreign) or bool(files.where("upper(file_format) NOT IN ('PARQUET', 'PUFFIN')").limit(1).count())

    def _count(self) -> dict[str, int]:
        """Compute the distinct values of the key columns, if many rows changed since the last time."""
        key, table = countable(self._key()), load_metadata(self._session, self._name)
        if not key or table.current is None or has_statistics(table, key):
            return {}
        listed = ", ".join(map(plain_literal, key))
        done = self._call("compute_table_stats", f"columns => array({listed})")
        return (
            {"statistics": len(key), "statistics_bytes": size_of(load_metadata(self._session, self._name))}
            if done
            else {}
        )

    def _applied(self) -> Layout:
        return Layout.from_json(load_metadata(self._session, self._name).properties.get(LAYOUT_PROPERTY))

    def _key(self) -> list[str]:
        key: list[str] = json.loads(load_metadata(self._session, self._name).properties.get(KEY_PROPERTY) or "[]")
        return key

    def _expire(self, named: Collection[int], before: datetime) -> int:
        """Expire snapshots by their IDs, not by Iceberg's own rules."""
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
        shown = load_metadata(self._session, self._name).current
        current = shown.id if shown is not None else None
        ids = expirable(snapshots, current, branch_snapshots(snapshots, current, heads) | set(named), before)
        if ids:
            listed = ", ".join(f"{one}L" for one in ids)
            self._call("expire_snapshots", f"older_than => TIMESTAMP '1970-01-02', snapshot_ids => array({listed})")
        return len(ids)

    def _kept_by_property(self) -> str:
        """Return why neither snapshots nor files may be removed: somebody set the property by which Iceberg refuses that."""
        collects = load_metadata(self._session, self._name).properties.get("gc.enabled", "true").lower() != "false"
        return "" if collects else "its property gc.enabled is false, which keeps its snapshots too: unset it"

    def _other_table(self) -> str:
        """Return why no orphan file may be removed: another catalog has a table in the same folder."""
        other = other_table_in(self._session, self._name)
        return f"its folder also holds the metadata of another table ({other})" if other else ""

    def _remove_orphans(self, before: datetime) -> int:
        """Remove files below the table's folder that no snapshot references, such as files of killed merges.

        Iceberg checks only this table: files of another table in the same folder would look like orphans.
        """
        arguments = f"older_than => TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}', prefix_listing => true"
        return len(self._call("remove_orphan_files", arguments))

    def _call(self, procedure: str, arguments: str) -> list[Row]:
        """Call one of Iceberg's procedures and return its rows."""
        table = plain_literal(".".join(map(quoted, (*self._name.namespace, self._name.name))))
        catalog = quoted(self._name.catalog)
        return self._session.sql(f"CALL {catalog}.system.{procedure}(table => {table}, {arguments})").collect()

    def _java(self) -> Any:
        return load_table(self._session, self._name)
