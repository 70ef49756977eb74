"""Memory of a Spark server's Java process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psutil

from tests.bench.report import Figure
from tests.harness.spark_server import RunningSparkServer


def memory_of(spark: RunningSparkServer, name: str, when: str) -> Iterator[Figure]:
    """Yield its objects that are in use, and all of its process.

    Args:
        spark: the server.
        name: what the figures' names begin with.
        when: what they end with.
    """
    assert spark.process is not None
    [java] = [child for child in psutil.Process(spark.process.pid).children() if child.name() == "java"]
    # What waits for a collection is no leak.
    subprocess.run(["jcmd", str(java.pid), "GC.run"], capture_output=True, check=True)
    yield Figure(f"{name}Java's objects after garbage collection, {when}", spark.client.status().heap_mib, "MiB")
    yield Figure(f"{name}Java's process, {when}", java.memory_info().rss >> 20, "MiB")
