"""The rows of a lake table in Apache Iceberg: by default merge-on-read with deletion vectors.

What changes make of the rows is decided and written in Arrow (:mod:`spark_jobs.iceberg.arrow_rows`). One commit publishes it. It is
refused if another commit came first: another merge of the same batches, perhaps an abandoned one that still runs, may have made it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.model.lake_table import LakeTable, marker_property, refuse_moved
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.publication import publication
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.ports import MergeChanges
from spark_jobs.errors import is_overtaken, translate_errors
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.iceberg.beginning import Beginning, publish_beginning, redefined
from spark_jobs.iceberg.loading import metadata_of
from spark_jobs.iceberg.removed_entries import drop_removed_entries
from spark_jobs.iceberg.renames import refuse_other_names, refuse_redefined, refuse_renamed
from spark_jobs.iceberg.row_delta import Replacement, RowCommit, rows_of
from spark_jobs.iceberg.table_definition import DefinedTable, Read
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.iceberg.upkeep import tidy
from spark_jobs.runtime.java_classes import java_classes

PUBLISH_ATTEMPTS = 5
"""Attempts of the commit when another writer changes the table's metadata, but not its rows, at the same time."""


class IcebergTable(DefinedTable):
    """One Iceberg table and its rows; implements :class:`cdc_lib.ports.MergeTarget`."""

    _marks: Mapping[str, str] = MappingProxyType({})  # properties of the published snapshot
    _merge_id = ""

    def apply(self, changes: MergeChanges, commit: TableCommit) -> int:
        """Apply changes; returns their number, in modes with one row of a key that of the changed keys."""
        with translate_errors("merge", self._table):
            loaded = self._as_loaded()
            table = self._unmoved(loaded.state)
            if self._beginning is not None:
                return self._begin_rows(self._beginning, changes, commit)
            done = self._replacement(loaded.java, loaded.metadata, table, changes, commit)
            current = loaded.metadata.current
            before = rows_of(current.summary) if current is not None else 0
            self._mark(table, commit, changes)
            self._publish(loaded.java, self._row_commit(done, table, before))
            return done.changes

    def drop_removed_entries(self) -> None:
        """Drop what the manifests of the current snapshot have of removed files."""
        with translate_errors("maintain", lake_table=str(self._name)):
            drop_removed_entries(self._session, self._java())

    def tidy(self, settings: MaintenanceConfig, named_by_cuts: Callable[[], Collection[int]], now: datetime) -> Tidied:
        """Do the maintenance that is due after a merge, usually nothing."""
        with translate_errors("tidy", lake_table=str(self._name)):
            java, self._newest = self._as_loaded().java, None
            return tidy(self._session, self._name, java, settings, named_by_cuts, now)

    def _replacement(
        self, java: Any, metadata: TableMetadata, table: LakeTable, changes: MergeChanges, commit: TableCommit
    ) -> Replacement:
        """Write what changes make of a table; nothing is committed."""
        rows = ArrowRows.of_table(self._session, java, metadata, table, self._table, rekeyed=self._rekeyed)
        done = rows.apply(changes, commit)
        done.refuse_wrong(self._table)
        return done

    def _row_commit(self, done: Replacement, table: LakeTable, before: int | None) -> RowCommit:
        decided = table if self._followed is None else replace(table, renames=self._followed)
        return RowCommit(
            done,
            table.snapshot_id,
            before,
            self._table,
            self._marked,
            lambda java: refuse_redefined(java, decided, self._table),
            java_classes(self._session),
        )

    def _begin_rows(self, to: Beginning, changes: MergeChanges, commit: TableCommit) -> int:
        """Publish the table's new definition with rows that are all it has then; returns the number of changes."""
        java = self._java()
        refuse_renamed(java, self._followed or (), self._table)
        change = redefined(self._session, java, to)
        metadata = metadata_of(self._session, change.table()).without_rows()
        done = self._replacement(change.table(), metadata, to.table, changes, commit)
        self._mark(to.table, commit, changes)
        now = publish_beginning(change, self._row_commit(done, to.table, 0))
        self._beginning, self._read, self._followed, self._newest = None, Read(now), to.table.renames, None
        return done.changes

    def _publish(self, java: Any, commit: RowCommit) -> None:
        """Publish; retried if other metadata of the table changed at the same time."""
        for attempts_left in reversed(range(PUBLISH_ATTEMPTS)):
            try:
                now = commit.publish(java)
            except Py4JJavaError as error:
                if not attempts_left or not is_overtaken(error):
                    raise
                java = self._java()
            else:
                self._read, self._newest = Read(now), None
                return

    def _mark(self, table: LakeTable, commit: TableCommit, changes: MergeChanges) -> None:
        """Give the commit to come its markers, and those of other source tables again."""
        markers = dict(commit.markers)
        for name, reached in () if changes.reselect is None else changes.reselect.reached:
            markers[name] = markers[name].with_reselected(reached)
        of_tables = {
            marker_property(self._source, name, routed=self._tables[name]): marker.to_json()
            for name, marker in markers.items()
        }
        self._marks, self._merge_id = {**table.carried, **of_tables}, commit.merge_id

    def _marked(self, rows: int | None) -> dict[str, str]:
        """Return the properties of the commit to come, after which the table has so many rows."""
        return {**self._marks, **publication(self._merge_id, rows)}

    def _unmoved(self, table: LakeTable) -> LakeTable:
        """Return the table, if it has not changed since this job read it first.

        Raises:
            MergeConflict: it has.
        """
        if self._followed is not None and self._beginning is None:
            refuse_other_names(table.renames, self._followed, self._table)
        if self._read is not None:
            refuse_moved(self._table, self._read.snapshot, table.snapshot_id)
        return table
