"""The format of the lake tables: the only module that imports a format outside the format's own folder.

A second format implements :class:`LakeFormat` in its own folder and is added to :data:`LAKE_FORMATS`. The suite
``tests/contract/test_merge_target.py`` runs over all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Protocol

from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import CdcError
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import Maintained, Tidied, UpkeepNeed
from cdc_lib.model.layout import Layout
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget
from spark_jobs.iceberg.iceberg_format import IcebergFormat

Need = Callable[[SparkSession, LakeName, datetime], UpkeepNeed | None]
"""Says what waits in one lake table for its maintenance, from its metadata alone; None if it does not exist. Raises StoreError if the
storage does not answer."""

Maintenance = Callable[[SparkSession, LakeName, Collection[int], datetime], Maintained]
"""Maintains one lake table, in a session that no other thread uses: arguments are the snapshots that cuts name, which are kept,
and the current time (UTC). Raises MergeConflict if a merge committed first, and StoreError if the storage does not answer."""


class LakeTarget(MergeTarget, Protocol):
    """A lake table that is merged in Spark."""

    def try_commit(self) -> None:
        """Commit nothing but that this was tried: an error says why the table cannot be committed to."""
        ...

    def drop_removed_entries(self) -> None:
        """Drop what the table's metadata still has of removed files, such as bounds; earlier snapshots keep theirs."""
        ...

    def tidy(self, settings: MaintenanceConfig, named_by_cuts: Callable[[], Collection[int]], now: datetime) -> Tidied:
        """Do the maintenance that is due after a merge, usually nothing.

        Args:
            settings: of the maintenance.
            named_by_cuts: returns the snapshots that cuts name; called only if snapshots may be expired.
            now: the time (UTC).
        """
        ...


class LakeFormat(Protocol):
    """Opens and maintains tables of one format."""

    def table(self, session: SparkSession, name: LakeName, source: str, tables: Mapping[TableName, bool]) -> LakeTarget:
        """Return one lake table, which need not exist yet; the catalog is not queried.

        Args:
            session: a Spark session that no other thread uses.
            name: the lake table.
            source: name of the source.
            tables: its source tables, and whether each is routed; messages and table properties name the first one.
        """
        ...

    def prove(self, spark: SparkSession) -> None:
        """Prove that this Spark does what merges rely on, before a job changes a table.

        Raises:
            ConfigError: it does not.
        """
        ...

    def ensure_namespaces(self, spark: SparkSession, names: Collection[LakeName]) -> dict[LakeName, CdcError]:
        """Create the namespaces of tables, before the tables' threads would race to create them; returns the errors of the others."""
        ...

    def need(self, names: Mapping[LakeName, Layout], settings: MaintenanceConfig) -> Need:
        """Return the function that says what waits in one of the tables.

        Args:
            names: the tables, each with its layout in the source file.
            settings: of the maintenance.
        """
        ...

    def maintenance(
        self, spark: SparkSession, names: Mapping[LakeName, Layout], settings: MaintenanceConfig
    ) -> Maintenance:
        """Return the function that maintains one of the tables.

        Args:
            spark: a session.
            names: the tables, each with its layout in the source file.
            settings: of the maintenance.

        Raises:
            StoreError: the catalog does not answer.
        """
        ...


LAKE_FORMATS: Mapping[str, LakeFormat] = {"iceberg": IcebergFormat()}
"""By name."""

LAKE_FORMAT = LAKE_FORMATS["iceberg"]
"""The format of all lake tables."""
