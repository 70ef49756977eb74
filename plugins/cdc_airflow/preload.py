"""Imports in processes that fork others what these need: they are copies of it and import nothing again.

Airflow calls the function below by its name, as a listener of the plugin.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys

from airflow.listeners import hookimpl

from cdc_airflow.airflow_versions import conf

log = logging.getLogger(__name__)

OF_TASKS = ("cdc_airflow.operators", "cdc_lib.store.objects.s3", "cdc_lib.pipeline")
"""What costs the most: numba, numpy, pyarrow, boto3 and the decoder, about one CPU second for each task."""

OF_COMPARISONS = ("cdc_lib.verify.changed.merged_tables", "cdc_lib.verify.coverage.due_ranges")
"""What tasks need that compare rows without Spark: the reading client. Only where it is installed."""

OF_DAG_FILES = ("cdc_airflow.factory",)
"""What each DAG file imports: a DAG processor reads each of them in a new process, twice a minute."""

_RUNNERS = {
    "airflow.jobs.scheduler_job_runner": OF_TASKS,
    "airflow.jobs.dag_processor_job_runner": OF_DAG_FILES,
}
"""What to import, by the module that tells which component a process is: Airflow sets the kind of a job after it calls us."""


@hookimpl
def on_starting(component: object) -> None:
    """Import what the processes need that a scheduler or a DAG processor forks from itself; ``[cdc] preload`` says no."""
    if not _is_job(component) or not conf.getboolean("cdc", "preload", fallback=True):
        return
    wanted = next((modules for runner, modules in _RUNNERS.items() if runner in sys.modules), ())
    if wanted is OF_TASKS and "LocalExecutor" not in conf.get("core", "executor"):
        return
    if wanted is OF_TASKS and importlib.util.find_spec("pyiceberg") is not None:
        wanted = (*OF_TASKS, *OF_COMPARISONS)
    for module in wanted:
        importlib.import_module(module)
    if OF_TASKS[-1] in wanted:
        importlib.import_module("cdc_lib.store.documents").prepare()
    if wanted:
        log.info("imported what CDC sources need: %s", ", ".join(wanted))


def _is_job(component: object) -> bool:
    """Tell a component of Airflow from a task."""
    jobs = sys.modules.get("airflow.jobs.job")
    return jobs is not None and isinstance(component, jobs.Job)
