"""Registers the plugin where this folder is Airflow's plugins folder and the package is not installed.

An installed package registers it by its entry point. Airflow reports a plugin that is registered twice as an import error.
"""

from __future__ import annotations

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="cdc"):
    from cdc_airflow.plugin import CdcPlugin

    __all__ = ["CdcPlugin"]
