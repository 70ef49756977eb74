"""``cdc serve``: the command starts the REST catalog, and refuses to listen to others without a token."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import httpx

from tests.harness.servers.process import free_port


def test_the_command_serves_the_cuts_until_it_is_interrupted(sources, lake, orders):
    lake.cut(1, datetime.now(UTC), orders)
    port = free_port()
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "serve", "shop", "--port", str(port)]
    environment = {**os.environ, "CDC_SERVE_TOKEN": "secret"}
    with subprocess.Popen(
        [*command, "--token-env", "CDC_SERVE_TOKEN"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == f"serving shop at http://127.0.0.1:{port}; Ctrl-C ends it\n"
            answer = _asked(f"http://127.0.0.1:{port}/v1/shop/namespaces/latest%1Fshop/tables", process)
            assert [one["name"] for one in answer.json()["identifiers"]] == ["orders"]
            answer = _asked(f"http://127.0.0.1:{port}/hbase/shop/shop.orders/%5B%22de%22%2C2%5D/d:name", process)
            assert answer.json()["Row"][0]["Cell"] == [{"column": "ZDpuYW1l", "timestamp": 0, "$": "Yg=="}]
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()


def test_other_users_of_the_machine_need_the_token_that_is_printed(sources, lake, orders):
    lake.cut(1, datetime.now(UTC), orders)
    port = free_port()
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "serve", "shop", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            token = re.match(r"clients send the token (\S+); ", process.stdout.readline())[1]
            address = f"http://127.0.0.1:{port}/v1/config?warehouse=shop"
            assert _asked(address, process).status_code == 401
            assert httpx.get(address, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        finally:
            process.kill()


def test_at_a_socket_there_is_no_token(sources, lake, orders, tmp_path):
    """Its mode says who may ask."""
    lake.cut(1, datetime.now(UTC), orders)
    at = tmp_path / "s"
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "serve", "shop", "--socket", str(at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == f"serving shop at unix://{at}; Ctrl-C ends it\n"
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(at))) as client:
                assert client.get("http://localhost/v1/config?warehouse=shop").status_code == 200
            assert at.stat().st_mode & 0o777 == 0o600
            process.send_signal(signal.SIGINT)
            assert process.wait(30) in (0, 130, -2)
        finally:
            process.kill()


def _asked(address, process):
    deadline = time.monotonic() + 60
    while True:
        try:
            return httpx.get(address, headers={"Authorization": "Bearer secret"})
        except httpx.ConnectError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_other_machines_need_a_token(cdc, lake, monkeypatch):
    result = cdc("serve", "shop", "--host", "0.0.0.0")
    assert result.exit_code == 2
    assert "is reachable from other machines, and no token is set" in result.stderr
    monkeypatch.delenv("CDC_SERVE_TOKEN", raising=False)
    result = cdc("serve", "shop", "--token-env", "CDC_SERVE_TOKEN")
    assert result.exit_code == 2
    assert "the environment variable CDC_SERVE_TOKEN is not set" in result.stderr


def test_a_source_without_a_lake_is_refused(cdc):
    result = cdc("serve", "nothing")
    assert result.exit_code == 2
    assert "there is no source 'nothing'" in result.stderr
    result = cdc("serve", "shop")
    assert result.exit_code == 2
    assert "there is no lake yet" in result.stderr
