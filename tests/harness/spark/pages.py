"""What Spark itself says of its work: the REST interface of its pages."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.harness.spark.server import RunningSparkServer


class SparkPages:
    """The pages of a Spark server's application.

    Args:
        server: started with ``spark.ui.enabled=true``.
        port: ``spark.ui.port``.
    """

    def __init__(self, server: RunningSparkServer, port: int) -> None:
        self._server, self._port = server, port

    def get(self, path: str) -> Any:
        """Return a document of the application, such as ``executors``."""
        application = self._server.client.status().application
        address = f"http://127.0.0.1:{self._port}/api/v1/applications/{application}/{path}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            return json.load(answer)

    def tags_of_running_jobs(self) -> set[str]:
        """Return which jobs of the server have a job of Spark that runs."""
        tags = {tag for job in self.get("jobs?status=running") for tag in job["jobTags"]}
        return {tag for tag in tags if not tag.startswith("spark-session-")}  # Spark's own

    def jobs_of(self, tag: str) -> list[int]:
        """Return the numbers of Spark's jobs for a job of the server, in any state."""
        return sorted(job["jobId"] for job in self.get("jobs") if tag in job["jobTags"])

    def busy_executors(self) -> list[str]:
        """Return the ids of the executors on other machines that run a task."""
        return [one["id"] for one in self.get("executors") if one["activeTasks"] and one["id"] != "driver"]

    def is_lost(self, executor: str) -> bool:
        """Whether Spark knows that an executor has ended."""
        return any(one["id"] == executor and not one["isActive"] for one in self.get("allexecutors"))

    def tasks_of(self, tag: str) -> list[dict[str, Any]]:
        """Return the attempts of all tasks for a job of the server; ``try`` is the number of the stage's try, then of the task's."""
        stages = {stage for job in self.get("jobs") if tag in job["jobTags"] for stage in job["stageIds"]}
        attempts = [one for one in self.get("stages") if one["stageId"] in stages and one["status"] != "SKIPPED"]
        return [
            {**task, "stage": one["stageId"], "try": (one["attemptId"], task["attempt"])}
            for one in attempts
            for task in self.get(f"stages/{one['stageId']}/{one['attemptId']}/taskList?length=1000")
        ]


def until_equal(look: Callable[[], object], expected: object, seconds: float = 180) -> None:
    """Look again and again until something is as expected: Spark's pages are some moments later than what happens."""
    deadline = time.monotonic() + seconds
    while (found := look()) != expected:
        assert time.monotonic() < deadline, f"{found}, not {expected}, in {seconds:.0f} s"
        time.sleep(0.1)
