"""The Spark server of the demo: a real merge of the shipped source file on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.config import load_source
from demo import paths, spark
from demo.paths import DATABASE, DemoError
from demo.server import DemoServer
from demo.spark import DemoSparkServer
from tests.harness.servers import MySqlServer
from tests.harness.servers.process import listens
from tests.harness.shop.source import command_line


@pytest.fixture
def source(mysql_server: MySqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The demo's source with one table; all data is in a folder of the test."""
    for module, name, value in [
        (paths, "BATCHES", tmp_path / "batches"),
        (paths, "LAKE", tmp_path / "lake"),
        (spark, "HOME", tmp_path),
    ]:
        monkeypatch.setattr(module, name, value)
    (tmp_path / "lake").mkdir()
    mysql_server.execute(f"CREATE DATABASE {DATABASE}")
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY)", database=DATABASE)
    mysql_server.execute("INSERT INTO orders VALUES (1), (2)", database=DATABASE)
    owner = {"host": mysql_server.host, "port": mysql_server.port}
    yield DemoServer("", owner, mysql_server.cdc_user, mysql_server.cdc_password)
    mysql_server.execute(f"DROP DATABASE {DATABASE}")


def test_merges_of_the_demo_run_on_its_spark_server(source: DemoServer, monkeypatch: pytest.MonkeyPatch):
    """Which needs its token, counts them, and has ended when it is stopped. The demo fails if none ran there."""
    server = DemoSparkServer()
    for name, value in source.environment(server.environment).items():
        monkeypatch.setenv(name, value)
    try:
        server.start(load_source(paths.SOURCE_FILE).merge)
        assert server.wait_until_ready().startswith(server.url)
        with pytest.raises(DemoError, match="no merge ran on the Spark server"):
            server.merges()
        command_line(paths.SOURCES, f"cdc run {DATABASE}")
        assert server.merges().startswith("1 of 1 merges")
        monkeypatch.setenv(paths.SPARK_TOKEN, "another")
        assert "refuses" in command_line(paths.SOURCES, f"cdc spark jobs {DATABASE}", 2)
    finally:
        server.stop()
    assert not listens("127.0.0.1", server.port)
