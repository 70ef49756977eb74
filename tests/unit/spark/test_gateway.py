from __future__ import annotations

import os
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.gateway import DROPPED_LINE, forward_lines, refuse_other_spark, start_java


def test_all_lines_of_java_but_the_warning_are_forwarded(tmp_path):
    """Also an unfinished last line when this process ends."""
    read, write = os.pipe()
    os.write(write, DROPPED_LINE + b"\n12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin\0\nafter the end\n")
    with (tmp_path / "lines").open("wb") as file:
        forward_lines(read, file.fileno())
    os.close(write)
    assert (tmp_path / "lines").read_bytes() == b"12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin"


def test_another_spark_of_the_machine_is_refused_before_it_starts(tmp_path, monkeypatch):
    """It would be started, and the two would not understand each other."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.6-amzn-2.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)  # as in a process without a test of Spark before
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(ConfigError, match=r"SPARK_HOME names .*, which is not Spark"):
        start_java({"spark.master": "local[1]"})
    (tmp_path / "jars" / f"spark-core_2.13-{pyspark.__version__}.jar").touch()
    refuse_other_spark()
    refuse_other_spark({"SPARK_HOME": str(Path(pyspark.__file__).parent)})
    refuse_other_spark({})
