"""Collects the batches that nobody needs any more, of every source, each day; see plugins/cdc_airflow/factory.py."""

from __future__ import annotations

from cdc_airflow.factory import make_maintenance, sources_folder

globals().update(make_maintenance(sources_folder(__file__)))
