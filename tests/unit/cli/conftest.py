"""A folder of sources whose store and lake are local, and the command line over it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.config import load_source
from tests.harness.lake.small_lake import SmallLake, row
from tests.harness.processes.sqlite_connections import every_connection_closed
from tests.harness.servers.process import free_port

PASSWORD = "hunter2"

SOURCE = """
server: {{host: 127.0.0.1, port: {port}, user: cdc, password_env: SHOP_PASSWORD, connect_timeout: 1s}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db?busy_timeout=30000", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder with one right source, whose server is not there."""
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "shop.yaml").write_text(SOURCE.format(port=free_port(), folder=tmp_path))
    return folder


@pytest.fixture
def lake(tmp_path, sources):
    """The lake of the source."""
    (tmp_path / "cat.db").touch()
    lake = SmallLake(load_source(sources / "shop.yaml"))
    yield lake
    lake.catalog.close()


@pytest.fixture
def orders(lake):
    """A table with three rows."""
    return lake.make("orders", [row("de", 2, "b"), row("at", 5, "c"), row("de", 1, "a")])


@pytest.fixture
def cdc(sources):
    """Call ``cdc`` with arguments; the result has exit_code, stdout and stderr, none of which shows the password.

    No command leaves a connection to the lake's catalog open.
    """

    def _cdc(*arguments):
        with every_connection_closed():
            result = CliRunner().invoke(app, ["--sources", str(sources), *map(str, arguments)])
        assert PASSWORD not in result.output
        return result

    return _cdc
