"""The format of the lake tables: the only module outside ``spark_jobs/iceberg/`` that imports one.

A second format implements :class:`LakeFormat` in a folder of its own, and is entered in :data:`LAKE_FORMATS`. The suite
``tests/contract/test_merge_target.py`` runs over all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import Maintained, Tidied
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget
from spark_jobs.iceberg.iceberg_format import IcebergFormat

Maintenance = Callable[[SparkSession, LakeName, Collection[int], datetime], Maintained]
"""Maintains one lake table, in a session that no other thread uses meanwhile: the snapshots that cuts name stay, and the time (UTC)
says what is old. Raises MergeConflict where a merge came first, and StoreError where the storage gives no answer."""


class LakeFormat(Protocol):
    """How tables of one format are opened and looked after."""

    def table(
        self, session: SparkSession, name: LakeName, source: str, tables: Mapping[TableName, bool]
    ) -> MergeTarget[DataFrame]:
        """Return one lake table, which need not exist yet; nothing is asked of the catalog.

        Args:
            session: a Spark session that no other thread uses meanwhile.
            name: the lake table.
            source: name of the source.
            tables: each source table whose rows go into it, and whether a route sends them; the first stands for all in messages
                and in the table's properties.
        """
        ...

    def ensure_namespaces(self, spark: SparkSession, names: Iterable[LakeName]) -> None:
        """Create the namespaces of tables, once and before the tables' threads race for it."""
        ...

    def tidy(
        self,
        session: SparkSession,
        name: LakeName,
        settings: MaintenanceConfig,
        named_by_cuts: Callable[[], Collection[int]],
        now: datetime,
    ) -> Tidied:
        """Do what is due for a table after a merge, most often nothing.

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
        ...

    def maintenance(self, spark: SparkSession, names: Sequence[LakeName], settings: MaintenanceConfig) -> Maintenance:
        """Return what maintains one of some tables.

        Raises:
            StoreError: the catalog gives no answer.
        """
        ...


LAKE_FORMATS: Mapping[str, LakeFormat] = {"iceberg": IcebergFormat()}
"""By name."""

LAKE_FORMAT = LAKE_FORMATS["iceberg"]
"""The format of all lake tables. Where a source may choose one, its configuration decides here."""
