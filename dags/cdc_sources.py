"""One Airflow DAG for each file under sources/ (or CDC_SOURCES); see plugins/cdc_airflow/factory.py."""

from __future__ import annotations

from cdc_airflow.factory import make_dags, sources_folder

globals().update(make_dags(sources_folder(__file__)))
