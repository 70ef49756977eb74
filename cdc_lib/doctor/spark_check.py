"""Checks that the Spark server of a source answers, or else that Spark is installed and the master of its cluster answers."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Iterator, Mapping

from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import ConfigError, SparkUnavailable
from cdc_lib.jobs.client import SparkServer
from cdc_lib.model.finding import Finding


def check_spark_server(config: SparkServerConfig, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yield a finding about the server.

    Args:
        config: its address.
        environ: has its token.
    """
    try:
        found = SparkServer(config, environ).status()
    except (ConfigError, SparkUnavailable) as error:
        yield Finding("error", error.message, error.hint)
        return
    at = f"jobs: {found.running} of at most {found.slots} running, {found.waiting} waiting"
    yield Finding("ok", f"the Spark server at {config.url} has Spark {found.spark} on {found.master}: {at}")


_PATIENCE = 3.0
"""Seconds that a master has to accept a connection."""

_STANDALONE, _PORT = "spark://", 7077

_CLUSTER = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""Environment variables, of which one says where YARN is."""


def check_spark(master: str, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yield findings about the package, about the masters of a standalone cluster, and about the configuration of YARN.

    Args:
        master: ``merge.spark_master`` of the source file.
        environ: environment variables.
    """
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("error", "merges need pyspark, which is not installed", 'pip install "lakecdc[spark]"')
    addresses = master.removeprefix(_STANDALONE).split(",") if master.startswith(_STANDALONE) else []
    silent = [f"{address}: {why}" for address in addresses if (why := _refusal(address))]
    if addresses and len(silent) == len(addresses):
        hint = "Start the master of the cluster, or correct merge.spark_master."
        yield Finding("error", f"the Spark master cannot be reached at {'; '.join(silent)}", hint)
    if master == "yarn" and not any(environ.get(name) for name in _CLUSTER):
        hint = (
            "Set HADOOP_CONF_DIR, where jobs start, to the folder with yarn-site.xml and core-site.xml of the cluster."
        )
        yield Finding("error", f"Spark cannot find YARN: neither {' nor '.join(_CLUSTER)} is set", hint)


def _refusal(address: str) -> str:
    """Return why a master does not accept a connection, else an empty text."""
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "")
    try:
        socket.create_connection((host.strip("[]"), int(port or _PORT)), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return ""
