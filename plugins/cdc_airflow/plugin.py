"""What Airflow must know by name: it keeps a DAG's timetable as a class and makes it again."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from cdc_airflow.on_request import DaysOnRequest


class CdcPlugin(AirflowPlugin):
    """Registers the timetable of the backfills."""

    name = "cdc_timetables"
    timetables = [DaysOnRequest]  # noqa: RUF012 - as Airflow declares it
