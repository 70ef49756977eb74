from __future__ import annotations

import pyspark
import pytest

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.jars import installed_spark, locked_jars
from spark_jobs.runtime.versions import refuse_versions

RUNTIMES = {jar.spark: jar for jar in locked_jars() if jar.name == "iceberg"}


def test_the_versions_of_the_lock_are_taken():
    refuse_versions(pyspark.__version__, RUNTIMES[installed_spark()].version)
    for spark, jar in RUNTIMES.items():
        assert jar.artifact.startswith(f"iceberg-spark-runtime-{spark}_")
        refuse_versions(f"{spark}.1-amzn-0", jar.version)


@pytest.mark.parametrize(
    ("spark", "iceberg"), [("3.4.4", "1.12.0"), ("4.2.0", "1.12.0"), ("4.1.4", "1.10.1"), ("4.1.4", "unknown")]
)
def test_versions_that_were_not_seen_to_be_right_are_refused(spark, iceberg):
    with pytest.raises(ConfigError, match=f"this is Spark {spark} with Iceberg {iceberg}: jobs need Spark 3.5 or 4.0"):
        refuse_versions(spark, iceberg)
