"""A job's way into the Spark of its server.

The server opens a py4j port for each job (:mod:`spark_jobs.server.gateways`) and passes it in the environment variables that
pyspark itself reads.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_jobs.runtime.java_view import use_caching_view

TAG = "CDC_SPARK_JOB_TAG"
"""Environment variable of a server's job: the tag of its work in Spark, by which the server ends it."""

OWN_FILE_SYSTEMS = "CDC_SPARK_OWN_FILE_SYSTEMS"
"""Environment variable of a server's job: set if another source uses the same bucket with other keys."""


def is_attached() -> bool:
    """Whether this process is a job of a Spark server."""
    return TAG in os.environ


def attached_session() -> SparkSession:
    """Return a new session of the server's Spark."""
    return _connected().newSession()


@cache
def _connected() -> SparkSession:
    """Connect to the server's Spark; once, because a merge that is planned again needs it a second time."""
    launch: Any = launch_gateway
    gateway = launch()
    use_caching_view(gateway)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as SparkContext does with a gateway that it starts
    java = gateway.jvm.org.apache.spark
    context = java.api.java.JavaSparkContext.fromSparkContext(java.SparkContext.getOrCreate())
    conf = SparkConf(_jconf=context.getConf())
    return SparkSession(SparkContext(jsc=context, gateway=gateway, conf=conf))


def tag_thread(session: SparkSession) -> None:
    """Mark what this thread does in Spark as work of the job; nothing happens outside a server's job."""
    if is_attached():
        session.sparkContext.addJobTag(os.environ[TAG])
