"""The Java process in which Spark runs: what it writes on its error stream comes to ours, without the line that says nothing.

Spark starts Java with a module of its vector mathematics, which nothing here uses, and Java warns of it in each run. No option of
Java or Spark keeps that line back.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from spark_jobs.runtime.java_view import use_remembering_view

LEFT_OUT = b"WARNING: Using incubator modules: jdk.incubator.vector"

_END = b"\0\n"
"""Written after the lines of Java when this process ends: what is before it is passed on first."""

_PATIENCE = 10
"""Seconds for the lines that are on their way."""


def start_java(settings: Mapping[str, str]) -> None:
    """Start Java for the Spark session that is made next; one that this process has already is taken as it is.

    Args:
        settings: of the session.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001 - no public way to it
        return
    read, write = os.pipe()
    lines = threading.Thread(target=pass_on, args=(read, 2), name="lines-of-java", daemon=True)
    lines.start()
    launch: Any = launch_gateway
    try:
        gateway = launch(SparkConf(loadDefaults=False).setAll(list(settings.items())), {"stderr": write})
    except BaseException:
        _end(write, lines)  # they say why
        raise
    use_remembering_view(gateway)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - what it does itself with a gateway that it starts
    atexit.register(_end, write, lines)


def pass_on(source: int, target: int) -> None:
    """Copy lines from one file descriptor to another, up to the mark of the end."""
    with os.fdopen(source, "rb") as stream:
        for line in stream:
            ended = line.endswith(_END)
            if line.rstrip() != LEFT_OUT:
                rest = memoryview(line.removesuffix(_END))
                while rest:
                    rest = rest[os.write(target, rest) :]
            if ended:
                return


def _end(write: int, lines: threading.Thread) -> None:
    """Wait until what Java has written is passed on."""
    os.write(write, _END)
    lines.join(_PATIENCE)
    os.close(write)
