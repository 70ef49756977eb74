"""Settings with which clients give up within seconds: a check must not take the minutes that a merge waits for a server."""

from __future__ import annotations

from cdc_lib.config.source import SourceConfig

STORE = {
    "fs.s3a.impl.disable.cache": "true",  # an open file system would keep the limits it was opened with
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.interval": "100ms",
    "fs.s3a.connection.establish.timeout": "3s",
    "fs.s3a.connection.timeout": "10s",
    "fs.gs.impl.disable.cache": "true",
    "fs.gs.http.max.retry": "1",
    "fs.gs.http.connect-timeout": "3000",
    "fs.gs.http.read-timeout": "10000",
    "fs.abfss.impl.disable.cache": "true",
    "fs.abfs.impl.disable.cache": "true",
    "fs.azure.io.retry.max.retries": "1",
    "fs.azure.oauth.token.fetch.retry.max.retries": "1",
    "fs.azure.http.connection.timeout": "3000",
    "fs.azure.http.read.timeout": "10000",
}
"""Of Hadoop's clients, in a session."""

CATALOG = {
    "s3.retry.num-retries": "1",
    "s3.retry.min-wait-ms": "100",
    "s3.retry.max-wait-ms": "200",
    "http-client.apache.connection-timeout-ms": "3000",
    "http-client.apache.socket-timeout-ms": "10000",
    "rest.client.connection-timeout-ms": "3000",
    "rest.client.socket-timeout-ms": "10000",
}
"""Of Iceberg's clients, as properties of the catalog."""

START = {"spark.task.maxFailures": "1", "spark.log.level": "OFF"}
"""Of a Spark that is started for the check: what fails is a finding, and not Spark's log."""


def hurried(config: SourceConfig) -> SourceConfig:
    """Return a source with these limits; what its file says comes first."""
    lake = config.lake.model_copy(update={"properties": {**CATALOG, **config.lake.properties}})
    conf = {} if config.merge.spark_server is not None else START
    merge = config.merge.model_copy(update={"conf": {**conf, **config.merge.conf}})
    return config.model_copy(update={"lake": lake, "merge": merge})
