"""The managed identity of a machine at Azure: a server that gives tokens for storage to whoever asks on this machine."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit


class IdentityServer:
    """Answers each request for a token; remembers which clients asked, and for what.

    Azurite looks at the claims of a token, and at no signature.
    """

    def __init__(self) -> None:
        self.header = secrets.token_hex(10)
        self.agents: list[str] = []
        self.resources: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                outer.resources.add(query["resource"][0].rstrip("/"))
                outer.agents.append(self.headers["User-Agent"])
                until = int(time.time()) + 3600
                answer = {"access_token": token(), "expires_on": str(until), "expires_in": "3600"}
                body = json.dumps({**answer, "resource": query["resource"][0], "token_type": "Bearer"}).encode()
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

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which Azure's clients find it, as an App Service sets them."""
        return {"IDENTITY_ENDPOINT": self.url, "IDENTITY_HEADER": self.header}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def token() -> str:
    """Return a token with the claims of Entra ID for Azure Storage, valid for an hour."""
    now, tenant = int(time.time()), "11111111-2222-3333-4444-555555555555"
    claims = {"aud": "https://storage.azure.com", "iss": f"https://sts.windows.net/{tenant}/", "tid": tenant}
    times = {"iat": now - 60, "nbf": now - 60, "exp": now + 3600}
    return f"{_part({'typ': 'JWT', 'alg': 'RS256'})}.{_part(claims | times)}.{_part({})}"


def _part(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
