"""The DAG that the guide prints, run as it is."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.airflow.database import put_database
from tests.harness.airflow.source import CONNECTION, PASSWORD_VARIABLE, AirflowSource, log_ins
from tests.harness.servers import MySqlServer

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "airflow.md"

RUN = """

if __name__ == "__main__":
    from airflow.serialization.serialized_objects import DagSerialization

    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).deadline
    dag.deadline = None  # only a scheduler makes deadlines: dag.test() of this Airflow fails with one
    run = dag.test()
    print("ENDED", run.state, *(f"{one.task_id}={one.state}" for one in run.get_task_instances()))
"""


@pytest.fixture
def source(mysql_server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A source with two tables; its file is where the guide's DAG looks for it. Only the connection has the password."""
    for name, value in log_ins(mysql_server).items():
        monkeypatch.setenv(name, value)
    name = f"shop_{secrets.token_hex(4)}"
    mysql_server.execute(f"CREATE DATABASE {name}")
    source = AirflowSource(name, mysql_server, tmp_path, tmp_path / "data").write()
    source.sql("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40))", "INSERT INTO orders VALUES (1, 'bicycle')")
    yield source
    mysql_server.execute(f"DROP DATABASE {name}")


@pytest.fixture
def by_hand(source: AirflowSource, tmp_path: Path) -> Callable[[], tuple[str, dict[str, str], str]]:
    """Runs the DAG once; returns the state of the run, those of its tasks, and their logs. Names alone are those of the test."""
    (block,) = [
        one for one in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "shop_by_hand" in one
    ]
    dags = tmp_path / "dags"
    dags.mkdir()
    text = block.replace("/opt/airflow/sources/shop.yaml", str(source.file))
    text = text.replace('"shop.orders"', f'"{source.name}.orders"').replace('"shop"', f'"{source.name}"')
    text = text.replace('"shop_db"', f'"{CONNECTION}"')
    (dags / "by_hand.py").write_text(text + RUN)
    env = {
        **{name: value for name, value in os.environ.items() if name != PASSWORD_VARIABLE},
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins"))),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    put_database(tmp_path / "airflow")

    def run() -> tuple[str, dict[str, str], str]:
        logs = called(env, str(dags / "by_hand.py"))
        (line,) = re.findall(r"^ENDED (.*)$", logs, re.MULTILINE)
        state, *tasks = line.split()
        return state, dict(one.split("=") for one in tasks), logs

    return run


def test_the_dag_of_the_guide_runs_as_it_is_printed(source: AirflowSource, by_hand):
    """The lake has the rows, and the comparison finds nothing wrong. Its logs count one row as one row, and nothing that is not there."""
    state, tasks, logs = by_hand()
    assert f"snapshot of {source.name}.orders: 1 batch, 1 row, " in logs
    assert re.findall(r".*\b(?:1 (?:rows|batches|windows|chunks|tables|events|files|ranges)|0 events)\b.*", logs) == []
    assert (state, tasks.pop("seal_days")) == ("success", "skipped")  # it notes from which day on it announces
    assert set(tasks.values()) == {"success"}
    assert source.differences() == []


def test_a_run_without_work_ends_after_its_plan(source: AirflowSource, by_hand):
    """No other task is run, and Spark does not start."""
    source.write(start="latest")
    state, tasks, _ = by_hand()
    assert (state, tasks.pop("plan")) == ("success", "success")
    assert set(tasks) == {"drain", "ack_drain", "plan_merge", "merge", "ack_lake", "seal_days", "verify"}
    assert set(tasks.values()) == {"skipped"}


def called(env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout
