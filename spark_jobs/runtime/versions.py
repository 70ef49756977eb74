"""The versions of Spark and of Iceberg that a job runs on, in its own process, on a server, or under ``spark-submit``.

Jobs were seen to be right on these; :mod:`spark_jobs.iceberg.proof` then proves what this very build does.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.jars import installed_spark, locked_jars, minor_of
from spark_jobs.runtime.java_classes import java_classes

ICEBERG = ("1.11", "1.12")
"""Versions of Iceberg with which jobs were seen to be right."""


def refuse_other_versions(spark: SparkSession) -> None:
    """Refuse versions with which jobs were not seen to be right.

    Raises:
        ConfigError: the versions are others.
    """
    refuse_versions(spark.version, iceberg_version(spark))


def iceberg_version(spark: SparkSession) -> str:
    """Return the version of the Iceberg on Java's class path."""
    return str(java_classes(spark).static("org.apache.iceberg.IcebergBuild", "version")())


def refuse_versions(spark: str, iceberg: str) -> None:
    """Refuse versions of Spark and Iceberg, as they name themselves.

    Raises:
        ConfigError: as above.
    """
    runtimes = {jar.spark: jar.coordinates for jar in locked_jars() if jar.name == "iceberg"}
    if minor_of(spark) not in runtimes or minor_of(iceberg) not in ICEBERG:
        raise ConfigError(
            f"this is Spark {spark} with Iceberg {iceberg}: jobs need Spark {' or '.join(sorted(runtimes))} with Iceberg "
            f"{' or '.join(ICEBERG)}",
            hint="Submit the job with such a Spark and, for example, --packages "
            f"{runtimes.get(minor_of(spark), runtimes[installed_spark()])}, or run it with the Spark of pyspark: cdc step merge",
        )
