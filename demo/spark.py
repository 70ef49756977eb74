"""The Spark server of the demo: the jobs of all runs share one Java process, which ends with the demo."""

from __future__ import annotations

import secrets
import sys

from cdc_lib.config.work import MergeConfig, SparkServerConfig
from cdc_lib.errors import SparkUnavailable
from cdc_lib.jobs.client import SparkServer
from cdc_lib.jobs.request import JobStatus
from demo.paths import HOME, SPARK_SERVER, SPARK_TOKEN, DemoError
from tests.harness.servers.process import ServerDidNotStart, ServerProcess, free_port

MEMORY = "1g"
"""Of Java, which stays for the whole demo. It takes what it may, needed or not, and the machine may have 8 GB for all of the demo."""

STOP_SECONDS = 30


class DemoSparkServer:
    """What ``cdc spark serve`` starts, at a free port and with a token of its own.

    :meth:`start` does not wait until it answers, so that Java starts beside Airflow.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._token = secrets.token_urlsafe(24)
        self._client = SparkServer(SparkServerConfig(url=self.url, token_env=SPARK_TOKEN), self.environment)
        self._process: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the source file finds it."""
        return {SPARK_SERVER: self.url, SPARK_TOKEN: self._token}

    def start(self, merge: MergeConfig) -> None:
        """Start its process.

        Args:
            merge: of the source file; its ``spark_master`` is the server's.
        """
        command = [sys.executable, "-m", "cdc_lib.cli", "spark", "serve", "--port", str(self.port)]
        command += ["--token-env", SPARK_TOKEN]
        command += ["--master", merge.spark_master, "--driver-memory", MEMORY]
        log = HOME / "spark-server.log"
        self._process = ServerProcess("the Spark server", command, log, self.environment, STOP_SECONDS)

    def wait_until_ready(self) -> str:
        """Wait until it answers; returns what people may want to know of it.

        Raises:
            DemoError: it has ended, or does not answer in time; the message shows the end of its log.
        """
        assert self._process is not None
        try:
            self._process.wait_until_ready(self._answers)
        except ServerDidNotStart as error:
            raise DemoError(str(error)) from error
        status = self._client.status()
        return f"{self.url} runs all merges in one Java process of {MEMORY}, on {status.master}"

    def merges(self) -> str:
        """Return how many merges have run on it, and how long they took.

        Raises:
            DemoError: none did: each started a Spark of its own.
        """
        return described(self._client.jobs())

    def stop(self) -> None:
        """Stop it; a second call does nothing."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _answers(self) -> bool:
        try:
            self._client.status()
        except SparkUnavailable:
            return False
        return True


def described(jobs: list[JobStatus]) -> str:
    """Say how many merges ran and ended well, and how long one took.

    Raises:
        DemoError: none ended well.
    """
    merges = [job for job in jobs if job.job == "merge"]
    good = sorted(job.seconds for job in merges if job.exit_code == 0)
    if not good:
        raise DemoError(f"no merge ran on the Spark server: {SPARK_SERVER} does not reach the tasks of Airflow")
    return f"{len(good)} of {len(merges)} merges succeeded in its Java process; the median took {good[len(good) // 2]:.1f} s"
