"""Error responses of a REST catalog to PyIceberg: retried where a retry helps, and followed by the hint that leads out."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import ClientError

from cdc_lib.config import LakeConfig, ServerConfig, SourceConfig, StoreConfig, TablesConfig
from cdc_lib.errors import LakeRefused, StoreError, StoreUnavailable
from cdc_lib.lake.catalog import open_table, translate_errors

EXPIRED = "The access token expired at 10:00, user s3cret"


class Refusing(BaseHTTPRequestHandler):
    """Answers the path that begins with the server's ``refused`` with its error, and gives a configuration."""

    def do_GET(self):
        status, kind, message = self.server.answer
        if self.path.startswith(self.server.refused):
            self.respond(status, {"error": {"code": status, "type": kind, "message": message}})
        else:
            self.respond(200, {"defaults": {}, "overrides": {}})

    def do_POST(self):
        self.respond(400, {"error": "invalid_client", "error_description": "s3cret"})

    def respond(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def opened(server, **properties):
    """Load the lake table of ``shop.orders``."""
    lake = LakeConfig(
        type="rest", uri=f"http://127.0.0.1:{server.server_port}", warehouse="main", properties=properties
    )
    config = SourceConfig(
        source="shop", server=ServerConfig(host="h", connection="c"), tables=TablesConfig(include=("shop.*",)),
        store=StoreConfig(url="file:///nowhere"), lake=lake,
    )  # fmt: skip
    with open_table(config, "shop.orders"):
        pass


@pytest.mark.parametrize("refused", ["/v1/config", "/v1/namespaces"])
@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((401, "NotAuthorizedException", EXPIRED), StoreUnavailable, "the log-in is over: 401"),
        ((419, "AuthenticationTimeoutException", "s3cret"), StoreUnavailable, "the log-in is over: 419"),
        ((401, "NotAuthorizedException", "no such token: s3cret"), LakeRefused, "refuses the log-in: 401"),
        ((403, "ForbiddenException", "s3cret may not"), LakeRefused, "refuses the log-in: 403"),
        ((429, "TooManyRequestsException", "s3cret"), StoreUnavailable, "answers with an error: 429"),
        ((500, "InternalServerError", "s3cret"), StoreUnavailable, "answers with an error: 500"),
        ((503, "SlowDownException", "s3cret"), StoreUnavailable, "answers with an error: 503"),
        ((400, "BadRequestException", "s3cret"), StoreError, "refuses the request: 400"),
    ],
)
def test_an_error_response_of_a_catalog_says_whether_a_retry_helps(server, refused, answer, kind, says):
    """While it is opened, and when a table is loaded; its message may hold a secret, and is not shown."""
    server.refused, server.answer = refused, answer
    with pytest.raises(StoreError if kind is not LakeRefused else LakeRefused) as raised:
        opened(server, token="s3cret")
    assert (type(raised.value), says in raised.value.message) == (kind, True)
    assert "s3cret" not in str(raised.value)
    assert raised.value.hint


def test_a_credential_that_an_oauth_server_does_not_know_is_a_refused_log_in(server):
    server.refused, server.answer = "/never", (200, "", "")
    with pytest.raises(LakeRefused, match="refuses the log-in: 400") as raised:
        opened(server, credential="me:s3cret", **{"oauth2-server-uri": f"http://127.0.0.1:{server.server_port}/tokens"})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ExpiredTokenException", 400, StoreUnavailable),
        ("AccessDeniedException", 403, LakeRefused),
        ("InternalServiceException", 500, StoreUnavailable),
        ("InvalidInputException", 400, StoreError),
    ],
)
def test_an_error_response_of_aws_glue_says_whether_a_retry_helps(code, status, kind):
    """PyIceberg raises what the client of AWS raises."""
    answer = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with pytest.raises(kind) as raised, translate_errors("shop.orders"):
        raise ClientError(answer, "GetTable")
    assert type(raised.value) is kind
