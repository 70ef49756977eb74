"""The status of a source whose server refuses, or whose store is away."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.servers.process import free_port


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source that has begun."""
    found = Capture(any_server, database, tmp_path, start="latest")
    found.pipeline.plan(by="test")
    return found


@pytest.fixture
def status(capture, tmp_path, monkeypatch):
    """Call ``cdc status`` with a password, over other sections of the source file; returns its result."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    plain = capture.config.model_dump(mode="json", exclude_unset=True)
    del plain["source"]
    plain["server"]["password_env"] = "STATUS_TEST_PASSWORD"

    def _status(*arguments, password=None, **sections):
        monkeypatch.setenv("STATUS_TEST_PASSWORD", password or capture.server.cdc_password)
        (tmp_path / f"{SOURCE}.yaml").write_text(yaml.safe_dump({**plain, **sections}))
        return CliRunner().invoke(app, ["--sources", str(tmp_path), "status", SOURCE, *arguments])

    return _status


def test_all_is_known_of_a_source_whose_server_and_store_answer(capture, status):
    found = status("--json")
    (shop,) = json.loads(found.stdout)
    assert (found.exit_code, shop["unanswered"]) == (0, [])
    assert shop["drain"]["position"] == shop["binlog_end"]


def test_what_the_store_says_is_shown_while_the_server_refuses(capture, status):
    """The password was changed: the error of the log-in, and where everything is."""
    assert "no drain yet" in status(password="another").stdout
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    position = str(status_of(capture.pipeline).drain.position)
    shown = status(password="another")
    assert shown.exit_code == 3
    assert position in shown.stdout
    assert f"{SOURCE}: the end of the binlog is unknown, because the server cannot be asked: " in shown.stdout
    (shop,) = json.loads(status("--json", password="another").stdout)
    (why,) = shop["unanswered"]
    assert why["who"] == "server"
    assert "denied" in why["what"].lower()


def test_what_the_server_says_is_shown_while_the_store_is_away(capture, status):
    """The end of the binlog, so that it is clear that the server works."""
    away = {"url": "s3://bucket/prefix", "endpoint_url": f"http://127.0.0.1:{free_port()}"}
    shown = status(store=away)
    assert shown.exit_code == 3
    assert str(capture.head()) in shown.stdout
    assert f"{SOURCE}: all but the end of the binlog is unknown, because the store cannot be read: " in shown.stdout
    assert "not started" not in shown.stdout
    (shop,) = json.loads(status("--json", store=away).stdout)
    assert [one["who"] for one in shop["unanswered"]] == ["store"]
