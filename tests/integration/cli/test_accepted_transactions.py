"""``cdc cursor failover --accept-missing`` on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.model.cursor import DRAIN
from tests.harness.airflow.source import PASSWORD_VARIABLE, AirflowSource
from tests.harness.network.former_server import FORMER, LOST, read_from_a_former_server
from tests.harness.servers import MySqlServer


def test_a_person_names_the_transactions_that_a_server_may_lack(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Others are refused, and the refusal names all that are missing; the cursor keeps what was accepted."""
    monkeypatch.setenv(PASSWORD_VARIABLE, mysql_server.cdc_password)
    sources = tmp_path / "sources"
    sources.mkdir()
    source = AirflowSource(mysql_database, mysql_server, sources, tmp_path / "kept")
    source.write(start="latest", failover={"fallback_interval": "1s"})
    before = read_from_a_former_server(source)
    to = f"{mysql_server.host}:{mysql_server.port}"

    def fail_over(*accepted: str) -> tuple[int, str]:
        command = ["--sources", str(sources), "cursor", "failover", source.name, "--to", to, *accepted]
        done = CliRunner().invoke(app, command)
        return done.exit_code, " ".join(done.output.split())

    for accepted in ((), ("--accept-missing", f"{FORMER}:1-2")):
        code, output = fail_over(*accepted)
        assert code != 0
        assert "it never had transactions that were read" in output
        assert LOST in output
    assert source.cursor(DRAIN) == before
    code, output = fail_over("--accept-missing", LOST)
    assert code == 0, output
    after = source.cursor(DRAIN)
    assert after is not None
    assert after.epoch == before.epoch + 1
    assert f"accepted that it never had {LOST}" in after.epoch_changes[-1].why
