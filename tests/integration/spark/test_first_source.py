"""The first source of somebody who answers what ``cdc init`` asks: in Airflow's home, with S3 and a Spark server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cdc_lib.config import DEFAULTS_FILE
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.shop.terminal import typed
from tests.harness.spark.server import TOKEN, RunningSparkServer

CDC = (sys.executable, "-m", "cdc_lib.cli")


def test_the_answers_are_all_that_a_first_run_needs(
    mysql_server: MySqlServer, mysql_database: str, s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    """The checks find nothing, the run merges, and the tables equal the source's; no file holds a secret."""
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20))", database=mysql_database)
    mysql_server.execute("INSERT INTO orders VALUES (1, 'bell'), (2, 'lamp')", database=mysql_database)
    secrets = {
        "SHOP_PASSWORD": mysql_server.cdc_password,
        "S3_ACCESS": s3_server.access_key,
        "S3_SECRET": s3_server.secret_key,
        TOKEN: "t0ken",
    }
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "CDC_SOURCES"))}
    environ |= secrets | {"AIRFLOW_HOME": str(tmp_path / "airflow")}
    with RunningSparkServer(tmp_path, token="t0ken") as spark:
        server = [
            "shop",
            mysql_server.host,
            str(mysql_server.port),
            mysql_server.cdc_user,
            "",
            "",
            f"{mysql_database}.*",
        ]
        store = [f"s3://{bucket}/cdc", s3_server.endpoint, "", "S3_ACCESS", "S3_SECRET"]
        lake = [f"jdbc:sqlite:{tmp_path}/catalog.db", "", spark.config.url, TOKEN, "spark,duckdb"]
        code, shown = typed((*CDC, "init"), [*server, *store, *lake], environ, tmp_path)
        assert code == 0, shown
        assert "0 errors" in shown
        assert "next: cdc run shop" in shown
        for command in (("doctor",), ("doctor", "shop", "--spark"), ("run", "shop"), ("verify", "shop")):
            done = subprocess.run((*CDC, *command), env=environ, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}\n{spark.log.read_text()[-3000:]}"
    assert "2 rows, no difference" in done.stderr
    sources = tmp_path / "airflow" / "dags" / "sources"
    written = "".join((sources / name).read_text() for name in ("shop.yaml", DEFAULTS_FILE))
    assert [name for name, value in secrets.items() if value in written] == []
