"""Memory of a Spark server's Java process, and the CPU time of all of its processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.bench.report import Figure
from tests.harness.spark.server import RunningSparkServer


def memory_of(spark: RunningSparkServer, name: str, when: str) -> Iterator[Figure]:
    """Yield its objects that are in use, and all of its process.

    Args:
        spark: the server.
        name: what the figures' names begin with.
        when: what they end with.
    """
    java = _java(spark)
    # What waits for a collection is no leak.
    subprocess.run(["jcmd", str(java.pid), "GC.run"], capture_output=True, check=True)
    yield Figure(f"{name}Java's objects after garbage collection, {when}", spark.client.status().heap_mib, "MiB")
    yield Figure(f"{name}Java's process, {when}", java.memory_info().rss >> 20, "MiB")


def peak_of(spark: RunningSparkServer) -> int:
    """Return the most MiB that its Java process has had in memory since its start."""
    lines = Path(f"/proc/{_java(spark).pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) >> 10


def cpu_of(spark: RunningSparkServer) -> float:
    """Return the CPU seconds of the server's processes until now, with those that have ended."""
    server = _server(spark)
    times = [one.cpu_times() for one in (server, *server.children())]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def _java(spark: RunningSparkServer) -> psutil.Process:
    [java] = [child for child in _server(spark).children() if child.name() == "java"]
    return java


def _server(spark: RunningSparkServer) -> psutil.Process:
    assert spark.process is not None
    return psutil.Process(spark.process.pid)
