"""Airflow's database in SQLite, made once on this machine: its migrations take more CPU time than most tests of Airflow."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time


def put_database(home: Path) -> None:
    """Copy a database with all of Airflow's tables and no DAGs into Airflow's home.

    Raises:
        RuntimeError: Airflow could not make it; the message shows why.
    """
    cache_dir().mkdir(parents=True, exist_ok=True)
    template = cache_dir() / f"airflow-{version('apache-airflow-core')}.db"
    with one_at_a_time(cache_dir() / ".airflow-db.lock"):
        if not template.is_file():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".airflow-db-") as scratch:
                _migrate(Path(scratch))
                (Path(scratch) / "airflow.db").rename(template)
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(template, home / "airflow.db")


_TIMES = {
    "dag_run": (
        *("logical_date", "data_interval_start", "data_interval_end"),
        *("run_after", "queued_at", "start_date", "end_date", "created_at"),
    ),
    "dag": (
        *(
            "next_dagrun",
            "next_dagrun_data_interval_start",
            "next_dagrun_data_interval_end",
            "next_dagrun_create_after",
        ),
    ),
}
"""Columns of the times from which the scheduler decides about the next run of a DAG, by table."""


def move_back(home: Path, dag: str, hours: int) -> None:
    """Move the runs of a DAG so many hours into the past: Airflow then knows no later ones, as after so long a pause.

    Args:
        home: of an Airflow with its database in SQLite, which may run.
        dag: id of a DAG that is paused.
        hours: how far.
    """
    with closing(sqlite3.connect(home / "airflow.db", timeout=60)) as database, database:
        for table, columns in _TIMES.items():
            moved = ", ".join(
                f"{name} = strftime('%Y-%m-%d %H:%M:%f000', {name}, '-{hours} hours')" for name in columns
            )
            database.execute(f"UPDATE {table} SET {moved} WHERE dag_id = ?", (dag,))


def _migrate(home: Path) -> None:
    settings = {"CORE__LOAD_EXAMPLES": "False", "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db"}
    variables = {f"AIRFLOW__{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    env = {**os.environ, **variables, "AIRFLOW_HOME": str(home)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"airflow db migrate failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
