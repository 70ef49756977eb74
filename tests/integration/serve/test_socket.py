"""Sockets of the servers: only their own user comes in, and clients tell nothing to a stranger's."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import ConfigError, SparkUnavailable
from cdc_lib.jobs.client import SparkServer
from cdc_lib.serve.server import address, listener
from tests.harness.docs.pages import ROOT

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs of another user")
PROGRAM = """
import sys
from pathlib import Path
from types import SimpleNamespace
from {module} import make_app
from cdc_lib.serve.server import listener, run
run(make_app({jobs}, ""), listener("", 0, Path(sys.argv[1])))
"""
SERVERS = {"lake": ("cdc_lib.serve.app", "{}"), "spark": ("spark_jobs.server.app", "SimpleNamespace(listed=list)")}
CONNECT = f"import os, socket, sys; os.setuid({NOBODY}); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
LISTEN = f"""
import os, socket, sys
os.setuid({NOBODY})
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1] + "-")
    server.listen()
    os.rename(sys.argv[1] + "-", sys.argv[1])
    print(server.accept()[0].recv(1000), flush=True)
"""


@pytest.fixture
def folder():
    """A folder that all users may enter and write to, with a short path."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


@contextmanager
def started(program, path):
    """Run a program that listens at a path."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            while not path.exists():
                assert process.poll() is None
                time.sleep(0.02)
            time.sleep(0.1)  # between the file and listening
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", SERVERS)
def test_only_the_user_of_the_server_comes_in(kind, folder):
    """Without a token; the rights of the socket decide."""
    module, jobs = SERVERS[kind]
    path = folder / "s"
    with started(PROGRAM.format(module=module, jobs=jobs), path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if kind == "spark":
            assert SparkServer(SparkServerConfig(url=f"unix://{path}"), {}).jobs() == []
        else:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(
                    b"GET /v1/config?warehouse=shop HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                assert client.recv(1000).startswith(b"HTTP/1.1 4")  # there is no such source
        if os.geteuid() == 0:
            other = subprocess.run([sys.executable, "-c", CONNECT, path], capture_output=True, text=True)
            assert "PermissionError" in other.stderr


@as_root
def test_a_server_of_another_user_is_sent_nothing(folder):
    """Who made the file before the server did would get the passwords of jobs."""
    path = folder / "s"
    with started(LISTEN, path) as process:
        with pytest.raises(ConfigError, match="that of another user"):
            SparkServer(SparkServerConfig(url=f"unix://{path}"), {}).jobs()
        assert process.communicate(timeout=10)[0] == "b''\n"


def test_a_socket_that_nobody_listens_at_is_replaced_and_no_other_file(folder):
    path = folder / "s"
    with closing(listener("", 0, path)) as first:
        assert address(first) == f"unix://{path}"
        with pytest.raises(ConfigError, match=f"cannot listen at {path}: Address already in use"):
            listener("", 0, path)
    with closing(listener("", 0, path)), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    path.unlink()
    path.write_text("rows")
    with pytest.raises(ConfigError, match="Address already in use"):
        listener("", 0, path)
    assert path.read_text() == "rows"


def test_a_socket_that_is_not_there_is_an_error_that_can_be_tried_again(folder):
    with pytest.raises(SparkUnavailable, match="does not answer: No such file") as caught:
        SparkServer(SparkServerConfig(url=f"unix://{folder}/s"), {}).jobs()
    assert f"cdc spark serve --socket {folder}/s" in caught.value.hint
