"""What Airflow must know by name: it keeps a DAG's timetable as a class, calls a listener, and serves the page."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from cdc_airflow import preload
from cdc_airflow.lazy_app import LazyApp
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.page.register import PAGE_APP, REACT_APPS


class CdcPlugin(AirflowPlugin):
    """Registers the timetable of the backfills, the page, the metrics for Prometheus, and the scheduler's imports."""

    name = "cdc"
    timetables = [DaysOnRequest]  # noqa: RUF012 - as Airflow declares it
    listeners = [preload]  # noqa: RUF012 - as Airflow declares it
    fastapi_apps = [  # noqa: RUF012 - as Airflow declares it
        {"app": LazyApp("cdc_airflow.metrics_app"), "url_prefix": "/cdc-metrics", "name": "CDC metrics"},
        PAGE_APP,
    ]
    react_apps = REACT_APPS
