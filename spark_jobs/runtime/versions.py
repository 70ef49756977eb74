"""The versions of Spark and of Iceberg that a job runs on, in its own process, on a server, or under ``spark-submit``.

Maintenance and verify were seen to be right on these.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.jars import locked_jars
from spark_jobs.runtime.java_classes import java_classes

ICEBERG = ("1.11", "1.12")
"""Versions of Iceberg with which the merge was seen to be right."""


def refuse_other_versions(spark: SparkSession) -> None:
    """Refuse versions with which the merge was not seen to be right.

    Raises:
        ConfigError: the versions are others.
    """
    iceberg = java_classes(spark).static("org.apache.iceberg.IcebergBuild", "version")
    refuse_versions(spark.version, str(iceberg()))


def refuse_versions(spark: str, iceberg: str) -> None:
    """Refuse versions of Spark and Iceberg, as they name themselves.

    Raises:
        ConfigError: as above.
    """
    runtime = next(jar for jar in locked_jars() if jar.artifact.startswith("iceberg-spark-runtime-"))
    of_spark = runtime.artifact.removeprefix("iceberg-spark-runtime-").partition("_")[0]
    if _minor(spark) != of_spark or _minor(iceberg) not in ICEBERG:
        raise ConfigError(
            f"this is Spark {spark} with Iceberg {iceberg}: a merge needs Spark {of_spark} with Iceberg {' or '.join(ICEBERG)}",
            hint=f"Submit the job with Spark {of_spark} and --packages {runtime.coordinates}, or run it with the Spark of "
            "pyspark: cdc step merge",
        )


def _minor(version: str) -> str:
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version
