from __future__ import annotations

import pyspark
import pytest

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.jars import locked_jars
from spark_jobs.runtime.versions import refuse_versions


def test_the_versions_of_the_lock_are_taken():
    [iceberg] = [jar.version for jar in locked_jars() if jar.artifact.startswith("iceberg-spark-runtime-")]
    refuse_versions(pyspark.__version__, iceberg)
    refuse_versions("4.1.1-amzn-0", "1.11.0")


@pytest.mark.parametrize(
    ("spark", "iceberg"), [("4.0.1", "1.11.0"), ("3.5.7", "1.12.0"), ("4.1.4", "1.10.1"), ("4.1.4", "unknown")]
)
def test_versions_that_write_otherwise_are_refused(spark, iceberg):
    """Spark 4.0 and 3.5 commit files to the table that a merge leaves for its last commit."""
    with pytest.raises(ConfigError, match=f"this is Spark {spark} with Iceberg {iceberg}"):
        refuse_versions(spark, iceberg)
