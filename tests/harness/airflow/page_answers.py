"""Asks the API of the page as the page does."""

from __future__ import annotations

import time
from typing import Any

import httpx

RESOURCES = ("", "/windows", "/tables", "/cuts", "/moves", "/history", "/actions")
"""What there is of each source."""


def ask(client: httpx.Client, path: str, wanted: int = 200, **query: Any) -> Any:
    """Ask as the page does: again as long as the store is being read."""
    deadline = time.monotonic() + 60
    while True:
        answer = client.get(f"/cdc/page{path}", params=query)
        body = answer.json() if answer.headers["content-type"] == "application/json" else None
        reading = isinstance(body, dict) and (body.get("reading") or body.get("states", {}).get("reading"))
        if not reading or time.monotonic() > deadline:
            assert answer.status_code == wanted, answer.text
            return body
        time.sleep(0.2)
