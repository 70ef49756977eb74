"""The guide's DAG with its deadline, on a real scheduler and triggerer: the webhook gets the message that the cut is old."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import ROOT, AirflowStandalone

GUIDE = ROOT / "docs" / "guides" / "airflow.md"


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a chat program's incoming webhook, and what was posted there."""
    posted: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the address is a secret."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{secrets.token_hex(16)}", posted
        server.shutdown()
        thread.join()


@pytest.fixture
def dag(station: AirflowStandalone, make_source: Callable[..., AirflowSource]) -> Iterator[str]:
    """The guide's DAG over a source without work, with a deadline that is over at once; its id."""
    source = make_source(start="latest")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (text,) = (block for block in blocks if "DeadlineAlert" in block)
    changes = {
        "/opt/airflow/sources/shop.yaml": str(source.file),
        ', "conn_id": "shop_db"': "",  # its file names the log-in
        'changed_tables("shop")': f'changed_tables("{source.name}")',
        'source="shop"': f'source="{source.name}"',
        '"shop_by_hand"': f'"{source.name}_by_hand"',
        'schedule="*/5 * * * *"': "schedule=None",
        "timedelta(minutes=15)": "timedelta(milliseconds=1)",
    }
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file: Path = station.dags / f"{source.name}_by_hand.py"
    part = file.with_suffix(".part")
    part.write_text(text)
    part.rename(file)
    name = f"{source.name}_by_hand"
    station.wait_for_dag(name)
    station.unpause(name)
    yield name
    file.unlink()


def test_a_run_that_is_late_is_told_to_the_webhook(
    station: AirflowStandalone, dag: str, webhook: tuple[str, list[dict[str, Any]]]
):
    """By the triggerer, with the address from the connection, which no file holds; the run itself goes on."""
    address, posted = webhook
    body = {"connection_id": "alerts", "conn_type": "http", "password": address}
    station.request("POST", "/api/v2/connections", body)
    try:
        run_id = station.trigger(dag)
        station.wait("the webhook has a message", lambda: posted)
        assert posted[0]["text"].startswith("The cut of shop is older than 15 minutes")
        assert station.wait_for_run(dag, run_id)["state"] == "success"
        secret = address.rpartition("/")[2].encode()
        files = [path for path in station.home.rglob("*") if path.is_file()]
        assert [path for path in files if secret in path.read_bytes()] == []
    finally:
        station.request("DELETE", "/api/v2/connections/alerts")
