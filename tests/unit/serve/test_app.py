"""Who is answered by a server without a token."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cdc_lib.serve.app import make_app


@pytest.mark.parametrize(
    ("address", "token", "answered"),
    [
        ("http://127.0.0.1:8181", "", True),
        ("http://localhost:8181", "", True),
        ("http://[::1]:8181", "", True),
        ("http://shop.example.com", "", False),
        ("http://shop.example.com", "secret", True),
    ],
)
def test_a_page_of_another_site_cannot_read_from_a_server_without_a_token(address: str, token: str, answered: bool):
    """Its name may become an address of this machine, and a browser then sends its requests here."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with TestClient(make_app({}, token), base_url=address, headers=headers) as client:
        answer = client.post("/hbase/shop/orders/1")
    assert (answer.status_code, "Invalid host" in answer.text) == ((406, False) if answered else (400, True))
