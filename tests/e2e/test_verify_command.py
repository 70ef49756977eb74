"""Commands that start Spark, in their own processes: exit status, JSON and page of ``cdc verify``, and all output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.harness.servers.skew import can_be_wrong, wrong_clock

ROOT = Path(__file__).parents[2]


OURS = re.compile(
    r"""\[1/6\]\ plan:\ 1\ snapshot | \[2/6\]\ drain | \[3/6\]\ ack\ drain:\ drain\ cursor\ at\ .*:\ 1\ chunk
    | \[4/6\]\ plan\ merge:\ 1\ batch\ up\ to\ .* | \[5/6\]\ merge | \[6/6\]\ ack\ lake:\ lake\ cursor\ .*:\ 1\ chunk
    | [┏┃┡│└].* | snapshot-\S+:\ 3\ rows,.* | merged:\ 0\ tables\ of\ .* | \S+\.a:\ 3\ changes\ into\ lake\..*
    | shop:\ cut\ .*,\ 3\ changes""",
    re.VERBOSE,
)
"""Lines of the first run of a source."""


@pytest.fixture
def cdc(mariadb_server, mariadb_database, tmp_path):
    """Run the command in its own process, with its source file."""
    (tmp_path / "sources").mkdir()
    settings = {
        "server": {
            "host": mariadb_server.host,
            "port": mariadb_server.port,
            "user": "cdc",
            "password_env": "CDC_PASSWORD",
        },
        "tables": [f"{mariadb_database}.*"],
        "store": {"url": f"file://{tmp_path}/batches"},
        "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"},
        "merge": {"driver_memory": "1g"},
        "verify": {"wait": "0s", "chunk_rows": 2},
    }
    environment = {**os.environ, "CDC_PASSWORD": mariadb_server.cdc_password, "CDC_SOURCES": str(tmp_path / "sources")}

    def run(*arguments, conf=None, more=None):
        settings["merge"]["conf"] = conf or {}
        (tmp_path / "sources" / "shop.yaml").write_text(yaml.safe_dump(settings))
        command = [sys.executable, "-m", "cdc_lib.cli", *arguments]
        return subprocess.run(command, env=environment | (more or {}), capture_output=True, text=True, timeout=900)

    return run


def test_a_run_prints_its_own_lines_and_drift_is_an_exit_status_a_report_and_a_line_of_the_status(
    cdc, mariadb_server, mariadb_database, tmp_path
):
    """Java and Spark print no banner. A row that is not in the binlog is reported; the page has the same report."""
    mariadb_server.execute(f"CREATE TABLE {mariadb_database}.a (id INT PRIMARY KEY, v VARCHAR(9))")
    mariadb_server.execute(f"INSERT INTO {mariadb_database}.a VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    assert cdc("step", "plan", "shop").returncode == 0  # makes the cursors
    early, missing = (
        cdc("verify", "shop"),
        f"{tmp_path}/catalog.db is not there\n  The first merge makes it. After a merge: correct lake.uri.\n",
    )
    assert (early.returncode, early.stdout) == (2, "")
    text = "there is no lake yet: " + missing
    assert early.stderr == f"error: {text}"
    done = cdc("run", "shop")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if not OURS.fullmatch(line)] == []
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"UPDATE {mariadb_database}.a SET v = 'other' WHERE id = 2")
        connection.commit()
    done = cdc("verify", "shop", f"{mariadb_database}.a", "--json", "--html", str(tmp_path / "report.html"))
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (table,) = report["tables"]
    assert not report["clean"]
    assert (table["source_rows"], table["different"], table["ranges"], table["unequal_ranges"]) == (3, 1, 2, 1)
    assert table["rows"][0]["cells"] == [{"column": "v", "source": "other", "lake": "y"}]
    assert "<code>other</code>" in (tmp_path / "report.html").read_text()
    status = cdc("status", "shop")
    assert f"{mariadb_database}.a has drift: 1 different" in status.stdout
    if can_be_wrong():  # a commit of the future would hold up every later merge
        ahead = cdc("verify", "shop", "--repair", more=wrong_clock(300))
        assert (ahead.returncode != 0, "this machine's clock is at" in ahead.stderr) == (True, True), ahead
        assert json.loads(cdc("verify", "shop", "--json").stdout)["tables"][0]["different"] == 1
        assert cdc("verify", "shop", "--repair").returncode == 0


def test_an_error_is_printed_once_with_warnings_of_spark_before_it(cdc, mariadb_server, mariadb_database, tmp_path):
    """The source file's log settings win."""
    mariadb_server.execute(f"CREATE TABLE {mariadb_database}.a (id INT PRIMARY KEY, v VARCHAR(9))")
    assert cdc("step", "plan", "shop").returncode == 0  # makes the cursors
    wrong = cdc("verify", "shop", "no.such", "--spark")
    error = "error: no captured table is named no.such\n  cdc doctor counts them.\n"
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (2, "", error)

    warned = cdc("verify", "shop", "no.such", "--spark", conf={"spark.cache.class": "old"})
    assert re.search(r"WARN SparkConf: .*spark.cache.class", warned.stderr)
    assert warned.stderr.endswith(error)

    theirs = tmp_path / "log4j2.properties"
    theirs.write_text((ROOT / "spark_jobs" / "runtime" / "log4j2.properties").read_text().replace("%p %c{1}", "THEIRS"))
    conf = {
        "spark.cache.class": "old",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={theirs.as_uri()}",
    }
    assert re.search(r"THEIRS: .*spark.cache.class", cdc("verify", "shop", "no.such", "--spark", conf=conf).stderr)
