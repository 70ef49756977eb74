"""A Spark server of its own process, as ``cdc spark serve`` starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import SparkUnavailable
from cdc_lib.jobs.client import SparkServer
from tests.harness.servers.process import free_port

TOKEN = "CDC_TEST_SPARK_TOKEN"

_PATIENCE = 180
"""Seconds for the start of Java on a busy machine."""


class RunningSparkServer:
    """Starts a server in a block, and stops it at the end.

    Args:
        folder: for its output.
        options: of ``cdc spark serve``.
        token: what clients have to send; empty for a server at a socket.
    """

    def __init__(self, folder: Path, *options: str, token: str = "") -> None:
        self.port = free_port()
        self.socket = Path(os.path.realpath(folder)) / "s"  # a path of 107 bytes at most
        self.log = folder / "spark-server.log"
        # Whatever needs a Python process beside the job's own fails: executors of a cluster may have none.
        no_python = ("--conf", "spark.pyspark.python=/no/python", "--conf", "spark.pyspark.driver.python=/no/python")
        self._options = ("--master", "local[2]", "--driver-memory", "1g", *no_python, *options)
        self._token = token
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> SparkServerConfig:
        """What a source file has under ``merge.spark_server``."""
        if not self._token:
            return SparkServerConfig(url=f"unix://{self.socket}")
        return SparkServerConfig(url=f"http://127.0.0.1:{self.port}", token_env=TOKEN)

    @property
    def client(self) -> SparkServer:
        """A client with the token."""
        return SparkServer(self.config, {TOKEN: self._token})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [*self.command(), "--port", str(self.port), *self._options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, TOKEN: self._token}, stdout=log, stderr=subprocess.STDOUT
            )
        self.wait(self.process)

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until it answers, as the process that somebody started."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.client.status()
            except SparkUnavailable:
                assert process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.2)
            else:
                return

    def command(self) -> Sequence[str]:
        """Return its command, without the options of Spark."""
        token = ["--token-env", TOKEN] if self._token else ["--socket", str(self.socket)]
        return [sys.executable, "-m", "cdc_lib.cli", "spark", "serve", *token]

    def kill(self) -> None:
        """End it without a warning, as a lack of memory does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def kill_job(self, job_id: str) -> None:
        """End the process of a job without a warning; it is the one that works in the job's folder."""
        (process,) = [
            cwd.parent for cwd in Path("/proc").glob("[0-9]*/cwd") if os.path.realpath(cwd).endswith(f"/{job_id}")
        ]
        os.kill(int(process.name), signal.SIGKILL)

    def stop(self) -> None:
        """Stop it as an operator does."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(60)
