"""Imports in the scheduler what the tasks of the LocalExecutor need: their processes are copies of it and import nothing again.

Airflow calls the function below by its name, as a listener of the plugin.
"""

from __future__ import annotations

import importlib
import logging
import sys

from airflow.listeners import hookimpl
from airflow.sdk import conf

log = logging.getLogger(__name__)

MODULES = (
    "cdc_airflow.operators",
    "cdc_airflow.merge",
    "cdc_airflow.backfill",
    "cdc_airflow.verify",
    "cdc_lib.pipeline",
)
"""What costs the most: numba, numpy, pyarrow and the decoder, about one CPU second for each task."""


@hookimpl
def on_starting(component: object) -> None:
    """Import the modules of tasks, if this process is a scheduler that forks its workers from itself; ``[cdc] preload`` says no."""
    wanted = "LocalExecutor" in conf.get("core", "executor") and conf.getboolean("cdc", "preload", fallback=True)
    if wanted and _is_scheduler(component):
        for module in MODULES:
            importlib.import_module(module)
        log.info("imported what the tasks of CDC sources need")


def _is_scheduler(component: object) -> bool:
    """Tell a scheduler from a triggerer, a DAG processor and a task: Airflow sets the kind of a job after this call."""
    jobs = sys.modules.get("airflow.jobs.job")
    return jobs is not None and isinstance(component, jobs.Job) and "airflow.jobs.scheduler_job_runner" in sys.modules
