"""The DAG that collects each day what is no longer needed, of every source; see plugins/cdc_airflow/factory.py."""

from __future__ import annotations

from cdc_airflow.factory import make_maintenance, sources_folder

globals().update(make_maintenance(sources_folder(__file__)))
