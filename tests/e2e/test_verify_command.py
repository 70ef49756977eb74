"""``cdc verify`` from the command line: its exit status, its JSON, its page, and what the status says afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml


@pytest.fixture
def cdc(mariadb_server, mariadb_database, tmp_path):
    """Run the command in a process of its own, with its source file."""
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
        "verify": {"wait": 0, "chunk_rows": 2},
    }
    (tmp_path / "sources" / "shop.yaml").write_text(yaml.safe_dump(settings))
    environment = {**os.environ, "CDC_PASSWORD": mariadb_server.cdc_password, "CDC_SOURCES": str(tmp_path / "sources")}

    def run(*arguments):
        command = [sys.executable, "-m", "cdc_lib.cli", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)

    return run


def test_drift_is_an_exit_status_a_report_and_a_line_of_the_status(cdc, mariadb_server, mariadb_database, tmp_path):
    """A row that no binlog told of is named; the page holds the same."""
    mariadb_server.execute(f"CREATE TABLE {mariadb_database}.a (id INT PRIMARY KEY, v VARCHAR(9))")
    mariadb_server.execute(f"INSERT INTO {mariadb_database}.a VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    assert cdc("run", "shop").returncode == 0
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"UPDATE {mariadb_database}.a SET v = 'other' WHERE id = 2")
        connection.commit()
    done = cdc("verify", "shop", f"{mariadb_database}.a", "--json", "--html", str(tmp_path / "report.html"))
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    (table,) = found["tables"]
    assert not found["clean"]
    assert (table["source_rows"], table["different"], table["ranges"], table["unequal_ranges"]) == (3, 1, 2, 1)
    assert table["rows"][0]["cells"] == [{"column": "v", "source": "other", "lake": "y"}]
    assert "<code>other</code>" in (tmp_path / "report.html").read_text()
    status = cdc("status", "shop")
    assert f"{mariadb_database}.a has drift: 1 different" in status.stdout

    wrong = cdc("verify", "shop", "no.such")
    assert wrong.returncode == 1
    assert "ConfigError: no captured table is named no.such" in wrong.stderr
