"""Apache Iceberg as the format of the lake tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import CdcError
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import Maintained, UpkeepNeed
from cdc_lib.model.layout import Layout
from cdc_lib.model.lexer import quoted
from cdc_lib.model.table_name import TableName
from spark_jobs.errors import translate_errors
from spark_jobs.iceberg.ddl import located
from spark_jobs.iceberg.lake_table import IcebergTable
from spark_jobs.iceberg.locations import all_locations, namespace_location_of
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.iceberg.need import need_of_table
from spark_jobs.iceberg.proof import prove_commits


class IcebergFormat:
    """Opens and maintains Iceberg tables; implements :class:`spark_jobs.lake_format.LakeFormat`."""

    def table(
        self, session: SparkSession, name: LakeName, source: str, tables: Mapping[TableName, bool]
    ) -> IcebergTable:
        """Return one lake table, which need not exist yet."""
        return IcebergTable(session, name, source, tables)

    def prove(self, spark: SparkSession) -> None:
        """Prove that commits do what merges rely on."""
        prove_commits(spark)

    def ensure_namespaces(self, spark: SparkSession, names: Collection[LakeName]) -> dict[LakeName, CdcError]:
        """Create the namespaces of tables, before the tables' threads would race to create them; returns the errors of the others."""
        refused: dict[LakeName, CdcError] = {}
        for name in {(one.catalog, one.namespace): one for one in sorted(names, key=str)}.values():
            parts = ".".join(map(quoted, (name.catalog, *name.namespace)))
            try:
                with translate_errors("create the namespace", namespace=parts):
                    if not spark.catalog.databaseExists(parts):
                        spark.sql(
                            f"CREATE NAMESPACE IF NOT EXISTS {parts}{located(namespace_location_of(spark, name))}"
                        )
            except CdcError as error:
                same = (one for one in names if (one.catalog, one.namespace) == (name.catalog, name.namespace))
                refused |= {one: type(error)(error.message, hint=error.hint, **error.context) for one in same}
        return refused

    def need(
        self, names: Mapping[LakeName, Layout], settings: MaintenanceConfig
    ) -> Callable[[SparkSession, LakeName, datetime], UpkeepNeed | None]:
        """Return the function that says what waits in one of the tables."""

        def need(session: SparkSession, name: LakeName, now: datetime) -> UpkeepNeed | None:
            return need_of_table(session, name, settings, names[name], now)

        return need

    def maintenance(
        self, spark: SparkSession, names: Mapping[LakeName, Layout], settings: MaintenanceConfig
    ) -> Callable[[SparkSession, LakeName, Collection[int], datetime], Maintained]:
        """Return the function that maintains one of the tables; the locations of all tables are listed once."""
        locations = all_locations(spark, list(names))

        def maintain(session: SparkSession, name: LakeName, named: Collection[int], now: datetime) -> Maintained:
            return Upkeep(session, name, settings, locations, names[name]).run(named, now)

        return maintain
