"""The DAG that docs/guides/airflow-2.md prints, in Airflow 2.11: a BashOperator runs the command in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.airflow.source import ORDERS_AND_COLOURS, AirflowSource
from tests.harness.airflow.venv import ROOT, airflow_venv
from tests.harness.docs.pages import blocks
from tests.harness.servers import MySqlServer
from tests.harness.spark.server import RunningSparkServer

GUIDE = ROOT / "docs" / "guides" / "airflow-2.md"


@pytest.mark.slow
def test_the_dag_of_the_guide_merges_the_source_into_the_lake(
    mysql_server: MySqlServer, tmp_path: Path, spark_server: RunningSparkServer
):
    """As it is printed, with other folders. The password comes from a connection of Airflow, and the log hides it."""
    source = AirflowSource(
        "shop",
        mysql_server,
        tmp_path / "sources",
        tmp_path / "shop",
        merge={"spark_server": {"url": spark_server.client.url}},
    )
    source.sources.mkdir()
    login = {"host": mysql_server.host, "port": mysql_server.port, "user": mysql_server.cdc_user}
    source.write(server={**login, "password_env": "SHOP_PASSWORD"})
    mysql_server.execute("DROP DATABASE IF EXISTS shop")
    mysql_server.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
    source.sql(*ORDERS_AND_COLOURS)
    command = tmp_path / "cdc"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m cdc_lib.cli "$@"\n')
    command.chmod(0o755)
    dags = tmp_path / "dags"
    dags.mkdir()
    printed = blocks(GUIDE.read_text(), "python")[0]
    placed = printed.replace("/opt/lakecdc/bin/cdc", str(command)).replace("/opt/airflow/sources", str(source.sources))
    (dags / "shop.py").write_text(placed)
    password = {"conn_type": "mysql", "login": mysql_server.cdc_user, "password": mysql_server.cdc_password}
    env = {
        **{
            name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW") and name != "PYTHONPATH"
        },
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SHOP_DB": json.dumps(password),
    }
    for words in (("db", "migrate"), ("dags", "test", "cdc_shop")):
        done = subprocess.run(
            [str(airflow_venv("2.11.0")), "-m", "airflow", *words], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "state=success" in done.stdout + done.stderr
    assert mysql_server.cdc_password not in done.stdout + done.stderr
    os.environ["SHOP_PASSWORD"] = mysql_server.cdc_password
    try:
        assert source.differences() == []
    finally:
        del os.environ["SHOP_PASSWORD"]
        mysql_server.execute("DROP DATABASE shop")
