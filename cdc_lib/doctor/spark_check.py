"""Checks that the Spark server of a source answers."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import ConfigError, SparkUnavailable
from cdc_lib.jobs.client import SparkServer
from cdc_lib.model.finding import Finding


def check_spark_server(config: SparkServerConfig) -> Iterator[Finding]:
    """Yield a finding about the server."""
    try:
        found = SparkServer(config).status()
    except (ConfigError, SparkUnavailable) as error:
        yield Finding("error", error.message, error.hint)
        return
    at = f"{found.running} of {found.slots} jobs run, {found.waiting} wait"
    yield Finding("ok", f"the Spark server at {config.url} has Spark {found.spark} on {found.master}: {at}")
