from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from cdc_airflow.notifications import WebhookNotifier
from cdc_lib.errors import ConfigError, PositionPurged

ERROR = PositionPurged("binlog.000004 is no longer there", hint="cdc snapshot shop 'shop.*'", source="shop")
FAILED = {"ti": SimpleNamespace(dag_id="cdc_shop", task_id="plan", run_id="run 7"), "exception": ERROR}


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What came to the address that the connection ``alerts`` holds."""
    found: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/hook"
    monkeypatch.setenv("AIRFLOW_CONN_ALERTS", json.dumps({"conn_type": "generic", "password": address}))
    yield found
    server.shutdown()
    server.server_close()


def test_a_failed_task_is_notified_with_its_error_and_hint(posted: list[str]):
    """The lines are those of the log."""
    WebhookNotifier(conn_id="alerts").notify(FAILED)
    (text,) = posted
    assert text.splitlines() == [
        "cdc_shop plan in run 7",
        "PositionPurged: binlog.000004 is no longer there [source=shop]",
        "What to do: cdc snapshot shop 'shop.*'",
    ]


def test_a_text_of_ones_own_is_a_template(posted: list[str]):
    """As the fields of any notifier."""
    WebhookNotifier(conn_id="alerts", text="{{ ti.dag_id }} needs somebody")({**FAILED})
    assert posted == ["cdc_shop needs somebody"]


def test_a_deadline_posts_from_the_triggerer(posted: list[str]):
    """There is no context, and the text is said as it is."""
    notifier = WebhookNotifier(conn_id="alerts", text="the lake of shop is older than 15 minutes")
    asyncio.run(notifier.async_notify({}))
    assert posted == ["the lake of shop is older than 15 minutes"]


@pytest.mark.parametrize("address", [None, "file:///etc/passwd", "hooks.example/x"])
def test_a_connection_without_an_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str | None):
    """Nothing but http and https is opened."""
    monkeypatch.setenv("AIRFLOW_CONN_ALERTS", json.dumps({"conn_type": "generic", "password": address}))
    with pytest.raises(ConfigError, match="alerts has no address"):
        WebhookNotifier(conn_id="alerts").notify(FAILED)
