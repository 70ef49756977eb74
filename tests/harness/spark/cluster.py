"""A standalone Spark cluster on the loopback interface: a master and workers, each a Java process, from pyspark's own jars."""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError

import pyspark

from tests.harness.servers.process import ServerProcess, free_port

HOME = Path(str(pyspark.__file__)).parent

WITHOUT_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Variables that no process of the cluster has: its executors get the keys from their jobs."""


class SparkCluster:
    """Runs in a block.

    Args:
        folder: for logs and the workers' files.
        workers: number of workers, each with one core.
        secret: with which its processes know each other; empty if they take any.
    """

    def __init__(self, folder: Path, workers: int = 2, secret: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port, self._page = free_port(), free_port()
        self._workers, self.secret = workers, secret
        self.processes: list[ServerProcess] = []

    @property
    def url(self) -> str:
        """What ``--master`` names."""
        return f"spark://127.0.0.1:{self.port}"

    @property
    def page(self) -> str:
        """Address of the master's pages."""
        return f"http://127.0.0.1:{self._page}"

    def __enter__(self) -> Self:
        self._start("master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self._page))
        self.processes[0].wait_until_ready(lambda: self._state() is not None)
        for number in range(self._workers):
            self.start_worker(number)
        self.wait_for_workers(self._workers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.stop()

    def start_worker(self, number: int) -> None:
        """Start a worker with one core."""
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", str(free_port())]
        options += ["--work-dir", str(self.folder / f"worker-{number}")]
        self._start(f"worker-{number}", *options, self.url)

    def kill_worker_of(self, application: str, executor: str) -> None:
        """Kill the worker of an executor, and the executor with it."""
        (folder,) = self.folder.glob(f"worker-*/{application}/{executor}")
        name = folder.relative_to(self.folder).parts[0]
        next(process for process in self.processes if process.name == name).kill()

    def wait_for_workers(self, number: int) -> None:
        """Wait until the master knows so many workers that live."""
        self.processes[0].wait_until_ready(lambda: self._alive() == number)

    def executors(self) -> list[str]:
        """Return what the executors wrote, a text for each."""
        return [file.read_text() for file in self.folder.glob("worker-*/app-*/*/stderr")]

    def _alive(self) -> int:
        state = self._state() or {"workers": []}
        return sum(worker["state"] == "ALIVE" for worker in state["workers"])

    def _state(self) -> dict[str, Any] | None:
        with (
            suppress(URLError, ConnectionError, json.JSONDecodeError),  # a page before the handler of JSON is there
            urllib.request.urlopen(f"{self.page}/json/") as page,  # noqa: S310 - its own address
        ):
            state: dict[str, Any] = json.load(page)
            return state
        return None

    def _start(self, what: str, *options: str) -> None:
        name = what.partition("-")[0]
        program = f"org.apache.spark.deploy.{name}.{name.capitalize()}"
        safe = ["-Dspark.authenticate=true"] if self.secret else []
        command = ["java", "-Xmx512m", *safe, "-cp", f"{HOME}/jars/*", program, *options]
        # Without SPARK_SCALA_VERSION a worker looks for a folder that only a distribution of Spark has.
        environment = {"SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"_SPARK_AUTH_SECRET": self.secret} if self.secret else {}
        taken = {key: os.environ.pop(key) for key in WITHOUT_KEYS if key in os.environ}
        try:
            self.processes.append(ServerProcess(what, command, self.folder / f"{what}.log", environment))
        finally:
            os.environ.update(taken)
