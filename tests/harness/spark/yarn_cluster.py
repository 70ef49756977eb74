"""YARN on the loopback interface: a resource manager and a node manager, each a Java process, of the Hadoop inside pyspark."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError

from spark_jobs.runtime.jars import jar_paths
from tests.harness.servers.process import ServerProcess, free_port
from tests.harness.spark.cluster import HOME, WITHOUT_KEYS

_OF_SPARK = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*")
"""Jars of pyspark that both processes need."""

_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "io")]
"""Java 17 closes to Hadoop's libraries what they look into."""


class YarnCluster:
    """Runs in a block.

    Args:
        folder: for configuration, logs and the containers' files; it is the file system of the cluster too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "conf"
        """What ``HADOOP_CONF_DIR`` names."""
        self._page = free_port()
        self._processes: list[ServerProcess] = []

    @property
    def options(self) -> tuple[str, ...]:
        """Options of ``cdc spark serve`` with which its executors are in this cluster, beside ``HADOOP_CONF_DIR``."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.yarn.jars": f"local:{HOME}/jars/*",  # or each start would copy some hundred MB twice
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
        }
        return ("--master", "yarn", *(f"--conf={name}={value}" for name, value in settings.items()))

    def __enter__(self) -> Self:
        for name in ("conf", "staging", "containers", "logs"):
            (self.folder / name).mkdir(parents=True)
        self._write("core-site", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.folder / "tmp")})
        self._write("yarn-site", self._settings())
        queues = {"root.queues": "default", "root.default.capacity": "100", "maximum-am-resource-percent": "0.9"}
        self._write("capacity-scheduler", {f"yarn.scheduler.capacity.{name}": value for name, value in queues.items()})
        try:
            self._start("resource manager", "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager")
            self._start("node manager", "org.apache.hadoop.yarn.server.nodemanager.NodeManager")
            self._processes[0].wait_until_ready(lambda: self._metrics().get("activeNodes") == 1)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()

    def executors(self) -> list[str]:
        """Return what the containers with executors wrote, a text for each."""
        logs = [file.read_text() for file in self.folder.glob("logs/application_*/container_*/stderr")]
        return [text for text in logs if "INFO CoarseGrainedExecutorBackend" in text]

    def running(self) -> int:
        """Return how many applications run."""
        return self._metrics()["appsRunning"]

    def _settings(self) -> Mapping[str, str]:
        ports = {
            "resourcemanager": ("address", "scheduler.address", "resource-tracker.address", "admin.address"),
            "nodemanager": ("address", "localizer.address", "webapp.address"),
        }
        return {
            **{f"yarn.{part}.{name}": f"127.0.0.1:{free_port()}" for part, names in ports.items() for name in names},
            **{f"yarn.{part}.{name}": "127.0.0.1" for part in ports for name in ("hostname", "bind-host")},
            "yarn.resourcemanager.webapp.address": f"127.0.0.1:{self._page}",
            "yarn.nodemanager.local-dirs": str(self.folder / "containers"),
            "yarn.nodemanager.log-dirs": str(self.folder / "logs"),
            "yarn.nodemanager.resource.memory-mb": "3072",
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.scheduler.minimum-allocation-mb": "128",
            # A machine with a full disk is no reason to refuse containers of a test.
            "yarn.nodemanager.disk-health-checker.enable": "false",
        }

    def _metrics(self) -> dict[str, int]:
        with (
            suppress(URLError, ConnectionError, json.JSONDecodeError),
            urllib.request.urlopen(f"http://127.0.0.1:{self._page}/ws/v1/cluster/metrics") as page,
        ):
            found: dict[str, int] = json.load(page)
            return found
        return {}

    def _write(self, name: str, settings: Mapping[str, str]) -> None:
        lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
        (self.conf / f"{name}.xml").write_text("\n".join(("<configuration>", *lines, "</configuration>")))

    def _start(self, what: str, program: str) -> None:
        jars = [path for pattern in _OF_SPARK for path in sorted((HOME / "jars").glob(f"{pattern}.jar"))]
        path = ":".join(map(str, [self.conf, *jars, *jar_paths(["yarn"])]))
        command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", *_OPENED, f"-Dhadoop.log.dir={self.folder}"]
        java = Path(os.path.realpath(shutil.which("java") or "java")).parents[1]
        taken = {key: os.environ.pop(key) for key in WITHOUT_KEYS if key in os.environ}
        try:
            log = self.folder / f"{what.replace(' ', '-')}.log"
            self._processes.append(ServerProcess(what, [*command, "-cp", path, program], log, {"JAVA_HOME": str(java)}))
        finally:
            os.environ.update(taken)
