"""Starts Spark's Java process and forwards its standard error, without one meaningless warning.

Spark starts Java with the incubating vector module, which nothing here uses, and Java warns about it in each run. No option of
Java or Spark turns the warning off.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from cdc_lib.errors import ConfigError
from cdc_lib.model.spark_master import is_in_one_process

DROPPED_LINE = b"WARNING: Using incubator modules: jdk.incubator.vector"

_END = b"\0\n"
"""Written after Java's lines when this process ends: all lines before it are forwarded first."""

_FLUSH_TIMEOUT = 10
"""Seconds to wait for Java's last lines."""


RPC_SECRET = "spark.authenticate.secret"
"""The setting with what driver, executors, master and workers know of each other."""


def start_java(settings: Mapping[str, str], hidden: Collection[str] = ()) -> None:
    """Start Java for the next Spark session; a running Java process is used as it is.

    Args:
        settings: of the session.
        hidden: variables of this process that Java, and the Python processes that it starts, do not get.

    Raises:
        ConfigError: ``SPARK_HOME`` names another Spark, or executors could not find this machine.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001 - no public way to it
        return
    refuse_other_spark()
    choose_address(settings["spark.master"])
    read, write = os.pipe()
    lines = threading.Thread(target=forward_lines, args=(read, 2), name="lines-of-java", daemon=True)
    lines.start()
    launch: Any = launch_gateway
    try:
        with without_variables(hidden):
            # Not on a command line, which every user of the machine can read; the session has it too.
            conf = SparkConf(loadDefaults=False).setAll([item for item in settings.items() if item[0] != RPC_SECRET])
            gateway = launch(conf, {"stderr": write})
    except BaseException:
        _end(write, lines)  # the lines explain the failure
        raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as it does with a gateway that it starts itself
    atexit.register(_end, write, lines)


def refuse_other_spark(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse a Spark of another version than pyspark's, which pyspark would start: machines of a cluster often set ``SPARK_HOME``.

    Raises:
        ConfigError: ``SPARK_HOME`` names one.
    """
    home = environ.get("SPARK_HOME")
    if home and not any(Path(home, "jars").glob(f"spark-core_*-{pyspark.__version__}.jar")):
        raise ConfigError(
            f"SPARK_HOME names {home}, which is not Spark {pyspark.__version__}",
            hint="Unset SPARK_HOME: pyspark brings its own Spark, also for a cluster.",
        )


def choose_address(master: str) -> None:
    """Let Java of one machine listen on its loopback interface where the machine's name has no address: Spark would not start.

    Args:
        master: where tasks run.

    Raises:
        ConfigError: they run on other machines.
    """
    try:
        socket.getaddrinfo(name := socket.gethostname(), None)
    except OSError as error:
        if is_in_one_process(master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        elif "SPARK_LOCAL_IP" not in os.environ:
            raise ConfigError(
                f"the name of this machine, {name}, has no address: {error}",
                hint="Add the name to /etc/hosts, or set SPARK_LOCAL_IP to an address at which executors find this machine.",
            ) from error


@contextmanager
def without_variables(names: Collection[str]) -> Iterator[None]:
    """Take variables away from this process in a block: pyspark gives Java all that it has."""
    taken = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


def forward_lines(source: int, target: int) -> None:
    """Copy lines from one file descriptor to another, up to the end mark."""
    with os.fdopen(source, "rb") as stream:
        for line in stream:
            ended = line.endswith(_END)
            if line.rstrip() != DROPPED_LINE:
                rest = memoryview(line.removesuffix(_END))
                while rest:
                    rest = rest[os.write(target, rest) :]
            if ended:
                return


def _end(write: int, lines: threading.Thread) -> None:
    """Wait until all of Java's lines are forwarded."""
    os.write(write, _END)
    lines.join(_FLUSH_TIMEOUT)
    os.close(write)
