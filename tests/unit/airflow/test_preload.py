"""What a scheduler and a DAG processor import before they fork others; in processes of their own, because imports stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

JOB = """
import sys
from airflow.jobs.job import Job
{before}
Job()
print(*(name for name in ("cdc_airflow.factory", "cdc_lib.pipeline", "cdc_lib.verify.coverage.due_ranges") if name in sys.modules))
"""
SCHEDULER = "import airflow.jobs.scheduler_job_runner"
DAG_PROCESSOR = "import airflow.jobs.dag_processor_job_runner"
LOCAL = {"CORE__EXECUTOR": "LocalExecutor"}


def imported(home: Path, before: str, **settings: str) -> list[str]:
    """Return which of some modules a component of Airflow has imported when its job begins."""
    env = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins")}
    env |= {f"AIRFLOW__{name}": value for name, value in settings.items()}
    (home / "plugins").mkdir(exist_ok=True)
    (home / "plugins" / "cdc_plugin.py").write_text("from cdc_airflow.plugin import CdcPlugin\n")
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(before=before)], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1].split()


def test_a_scheduler_imports_what_tasks_need(tmp_path: Path):
    """Its workers are forks of it."""
    assert {"cdc_lib.pipeline", "cdc_lib.verify.coverage.due_ranges"} <= set(imported(tmp_path, SCHEDULER, **LOCAL))


def test_a_dag_processor_imports_what_dag_files_need_and_nothing_heavy(tmp_path: Path):
    """It reads each file in a fork of itself, with any executor."""
    assert imported(tmp_path, DAG_PROCESSOR, CORE__EXECUTOR="CeleryExecutor") == ["cdc_airflow.factory"]


@pytest.mark.parametrize(
    ("before", "settings"),
    [
        ("import airflow.jobs.triggerer_job_runner", LOCAL),
        (SCHEDULER, {"CORE__EXECUTOR": "CeleryExecutor"}),
        (SCHEDULER, {**LOCAL, "CDC__PRELOAD": "False"}),
        (DAG_PROCESSOR, {**LOCAL, "CDC__PRELOAD": "False"}),
    ],
    ids=["a triggerer", "workers on other machines", "switched off", "switched off in a DAG processor"],
)
def test_nothing_is_imported_that_no_task_of_this_process_needs(tmp_path: Path, before: str, settings: dict[str, str]):
    """It would only take memory and time."""
    assert imported(tmp_path, before, **settings) == []
