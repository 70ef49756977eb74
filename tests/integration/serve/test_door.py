"""Clients without the token, against both servers as processes: they get neither memory nor the place of others."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import urllib3

from cdc_lib.serve.door import LARGEST
from cdc_lib.serve.server import MOST_CONNECTIONS
from tests.harness.servers.process import free_port

PROGRAM = """
import sys
{first}
from types import SimpleNamespace
from {module} import make_app
from cdc_lib.serve.server import listener, run
run(make_app({jobs}, "t0ken"), listener("127.0.0.1", int(sys.argv[1]), None))
"""
SERVERS = {"lake": ("cdc_lib.serve.app", "{}"), "spark": ("spark_jobs.server.app", "SimpleNamespace(listed=list)")}
MANY = 300


class Server:
    """A server as ``cdc serve`` or ``cdc spark serve`` runs it, without a lake or Spark."""

    def __init__(self, kind, first=""):
        module, jobs = SERVERS[kind]
        self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(module=module, jobs=jobs, first=first), str(self.port)]
        )
        self.path = {"lake": "/v1/config", "spark": "/v1/jobs"}[kind]
        while self.process.poll() is None:
            with suppress(OSError):
                self.connect().close()
                return
        raise AssertionError("it ended")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=120)

    def largest(self):
        """Bytes of memory that it has had at most."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def status(self, body=None, **headers):
        method = "GET" if body is None else "POST"
        return urllib3.request(
            method, f"http://127.0.0.1:{self.port}{self.path}", body=body, headers=headers, timeout=120, retries=False
        ).status


@pytest.fixture(params=SERVERS)
def server(request):
    made = Server(request.param)
    yield made
    made.process.terminate()
    assert made.process.wait(60) in (0, -15)


@pytest.fixture(params=["", "sys.modules['uvloop'] = None"], ids=["uvloop", "asyncio"])
def on_each_loop(request):
    """A server on each event loop: uvloop is there beside Airflow, and nothing of ours needs it."""
    made = Server("spark", request.param)
    yield made
    made.process.terminate()
    assert made.process.wait(60) in (0, -15)


def pour(server, headers, chunk):
    """Send a body of 256 MiB, as far as the server takes it; return how its answer begins."""
    with server.connect() as client:
        with suppress(OSError):
            client.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n".encode())
            for _ in range(256):
                client.sendall(chunk)
        with suppress(OSError):
            return client.recv(12)
        return b""


MIB = b'"' + b"x" * ((1 << 20) - 2) + b'"'
BODIES = {
    "with a length": (f"Content-Type: application/json\r\nContent-Length: {256 << 20}", MIB),
    "in chunks": (
        "Content-Type: application/json\r\nTransfer-Encoding: chunked",
        b"100000\r\n" + MIB + b"\r\n",
    ),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("token", ["", "Authorization: Bearer t0ken\r\n"], ids=["stranger", "with the token"])
def test_a_large_body_takes_no_memory(server, body, token):
    """A stranger's is not read, and that of others only to a bound."""
    before = server.largest()
    headers, chunk = BODIES[body]
    for _ in range(4):
        pour(server, token + headers, chunk)
    assert server.largest() - before < 16 * LARGEST
    assert server.status(Authorization="Bearer t0ken") in (200, 400)


def test_a_stranger_is_refused_before_the_body_is_there(server):
    """The answer does not wait for what the headers promise."""
    with server.connect() as client:
        client.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        answer = b""
        while more := client.recv(1 << 16):
            answer += more
    assert answer.startswith(b"HTTP/1.1 401 ")


def test_a_body_that_is_too_large_is_refused_by_its_status(server):
    body = json.dumps("x" * LARGEST).encode()
    with suppress(urllib3.exceptions.ProtocolError):  # it may be refused while it is sent
        assert server.status(body, Authorization="Bearer t0ken", **{"Content-Type": "application/json"}) == 413


def test_clients_that_send_no_whole_request_keep_no_others_out(server):
    """They are closed, whether the beginning of a request came or nothing."""
    with ExitStack() as open_sockets:
        clients = [open_sockets.enter_context(server.connect()) for _ in range(MANY)]
        for number, client in enumerate(clients):
            with suppress(OSError):  # there is no room for so many
                client.sendall(b"GET /v1/st" if number % 2 else b"")
        assert server.status(Authorization="Bearer t0ken") in (200, 400)
        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < MOST_CONNECTIONS + 40
        for client in clients:
            with suppress(ConnectionError):
                assert client.recv(1) == b""


def test_clients_that_come_at_once_have_no_more_room(on_each_loop):
    """Python's own loop takes all that wait before it closes any."""
    with ExitStack() as open_sockets:
        for _ in range(MANY):
            open_sockets.enter_context(on_each_loop.connect())
        assert on_each_loop.status(Authorization="Bearer t0ken") in (200, 400)
        assert len(list(Path(f"/proc/{on_each_loop.process.pid}/fd").iterdir())) < MOST_CONNECTIONS + 40


def test_endless_headers_are_refused(server):
    with server.connect() as client, suppress(ConnectionError):
        client.sendall(b"GET /v1/jobs HTTP/1.1\r\n")
        for _ in range(64):
            client.sendall(b"X: " + b"y" * 65536 + b"\r\n")
        assert client.recv(12) in (b"HTTP/1.1 400", b"")
