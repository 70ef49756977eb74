"""What the scheduler imports before it forks its workers; in processes of their own, because imports stay."""

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
print("cdc_lib.pipeline" in sys.modules)
"""
SCHEDULER = "import airflow.jobs.scheduler_job_runner"


def imports_the_pipeline(home: Path, before: str, **settings: str) -> bool:
    """Return whether a component of Airflow has imported the pipeline when its job begins."""
    env = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins")}
    env |= {f"AIRFLOW__{name}": value for name, value in settings.items()}
    (home / "plugins").mkdir(exist_ok=True)
    (home / "plugins" / "cdc_plugin.py").write_text("from cdc_airflow.plugin import CdcPlugin\n")
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(before=before)], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1] == "True"


def test_a_scheduler_imports_what_tasks_need(tmp_path: Path):
    """Its workers are forks of it."""
    assert imports_the_pipeline(tmp_path, SCHEDULER, CORE__EXECUTOR="LocalExecutor")


@pytest.mark.parametrize(
    ("before", "settings"),
    [
        ("import airflow.jobs.triggerer_job_runner", {"CORE__EXECUTOR": "LocalExecutor"}),
        (SCHEDULER, {"CORE__EXECUTOR": "CeleryExecutor"}),
        (SCHEDULER, {"CORE__EXECUTOR": "LocalExecutor", "CDC__PRELOAD": "False"}),
    ],
    ids=["a triggerer", "workers on other machines", "switched off"],
)
def test_nothing_is_imported_that_no_task_of_this_process_needs(tmp_path: Path, before: str, settings: dict[str, str]):
    """It would only take memory and time."""
    assert not imports_the_pipeline(tmp_path, before, **settings)
