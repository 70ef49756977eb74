"""What waits in an Iceberg table for its maintenance: one load of its metadata."""

from __future__ import annotations

from datetime import datetime

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.layout import has_layout
from cdc_lib.lake.upkeep_need import need_of
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import UpkeepNeed
from cdc_lib.model.layout import LAYOUT_PROPERTY, Layout
from spark_jobs.errors import is_missing, translate_errors
from spark_jobs.iceberg.loading import load_metadata


def need_of_table(
    session: SparkSession, name: LakeName, settings: MaintenanceConfig, layout: Layout, now: datetime
) -> UpkeepNeed | None:
    """Return what waits in a table; None if it does not exist.

    Args:
        session: a Spark session that no other thread uses.
        name: the lake table.
        settings: of the maintenance.
        layout: of the table in the source file.
        now: the time (UTC).

    Raises:
        StoreError: the storage does not answer.
    """
    with translate_errors("maintain", lake_table=str(name)):
        try:
            table = load_metadata(session, name)
        except (Py4JError, PySparkException) as error:
            if is_missing(error):
                return None
            raise
    has = Layout.from_json(table.properties.get(LAYOUT_PROPERTY))
    other = not has_layout(has, layout, [one.name for one in table.columns() or ()])
    summary = table.current.summary if table.current is not None else {}
    committed = [one.at for one in table.snapshots.values()]
    return need_of(summary, committed, settings, now, other_layout=other)
