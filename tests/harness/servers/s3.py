"""A real S3 server: versitygw over a local folder, built from source once and kept in the cache.

Its conditional writes (If-None-Match, If-Match) are answered as S3 answers them, which the cursors and manifests need.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import boto3
from botocore.config import Config

from tests.harness.processes.go_programs import GoFailed, built
from tests.harness.servers.certificate import write_certificate
from tests.harness.servers.process import ServerOfTests, ServerProcess, free_port, listens

VERSITYGW = "1.8.0"


class NoS3Here(Exception):
    """The S3 server could not be built."""


class S3Server(ServerOfTests):
    """An S3 endpoint at 127.0.0.1 with random credentials.

    Args:
        data_dir: folder of the objects, kept after a stop; by default a temporary folder, removed with the server.
        port: TCP port; 0 takes a free one.
        names: names and addresses of its certificate; without it, it speaks plain HTTP.
    """

    region = "us-east-1"
    host = "127.0.0.1"

    def __init__(self, data_dir: Path | None = None, port: int = 0, names: Sequence[str] = ()) -> None:
        self.port = port or free_port()
        self.access_key = secrets.token_hex(10)
        self.secret_key = secrets.token_hex(20)
        self._scratch = Path(tempfile.mkdtemp(prefix="lakecdc-s3-"))
        self.data_dir = data_dir or self._scratch / "data"
        self.names = names
        self.certificate = self._scratch / "certificate.pem"
        self._process: ServerProcess | None = None

    @property
    def endpoint(self) -> str:
        """Return its URL."""
        return f"http{'s' if self.names else ''}://{self.host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which AWS clients connect to it."""
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
            verify=str(self.certificate) if self.names else None,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}),
        )

    def make_bucket(self, prefix: str = "lake") -> str:
        """Make a bucket with a unique name and return the name."""
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
        accounts = self._scratch / "accounts"  # those that tests add: tests/harness/store/s3_accounts.py
        accounts.mkdir(exist_ok=True)
        command += ["--iam-dir", str(accounts)]
        if self.names:
            write_certificate(self.certificate, self._scratch / "key.pem", self.names)
            command += ["--cert", str(self.certificate), "--key", str(self._scratch / "key.pem")]
        command += ["posix", *self._metadata_options(), str(self.data_dir)]
        credentials = {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        self._process = ServerProcess("versitygw", command, self._scratch / "s3.log", credentials)
        self._process.wait_until_ready(lambda: listens(self.host, self.port))
        return self

    def stop(self) -> None:
        """Stop it, and remove a temporary data folder."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _metadata_options(self) -> list[str]:
        """Return the option that keeps etags in files if the file system has no extended attributes."""
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
    module = f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"
    try:
        return built("versitygw", VERSITYGW, "the S3 server", ["install", module])
    except GoFailed as error:
        raise NoS3Here(f"the S3 server (versitygw {VERSITYGW}) could not be built: {error}") from error
