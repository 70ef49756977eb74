"""A Google service account: a key of its own, and a server that exchanges what the key signed for tokens."""

from __future__ import annotations

import base64
import json
import secrets
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

EMAIL = "cdc@project.iam.gserviceaccount.com"


@cache
def private_key() -> str:
    """Return a new RSA key in the form PEM, as Google's console gives it."""
    key = generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def account_key(token_uri: str) -> str:
    """Return the JSON key of a service account whose tokens come from an address."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "project",
            "private_key_id": "a1b2",
            "private_key": private_key(),
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": token_uri,
        }
    )


class TokenServer:
    """Answers each request for a token; remembers who asked, and with which client."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(10)
        self.asked_by: set[str] = set()
        self.agents: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                claims = form["assertion"][0].split(".")[1]
                outer.asked_by.add(json.loads(base64.urlsafe_b64decode(claims + "=="))["iss"])
                outer.agents.append(self.headers["User-Agent"])
                body = json.dumps({"access_token": outer.token, "expires_in": 3600, "token_type": "Bearer"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
