from __future__ import annotations

import subprocess
import sys
import time

import pytest

from cdc_lib.cli import spark
from cdc_lib.errors import ConfigError, MergeConflict, MergeError


def python(code):
    """A command that runs this code."""
    return [sys.executable, "-c", code]


def test_a_job_that_ends_well_is_nothing_to_tell():
    """No output of ours, no error."""
    spark.run(python("pass"))


def test_a_job_that_fails_is_an_error_with_its_code():
    """What it said stands above in the output."""
    with pytest.raises(MergeError, match="ended with code 3") as caught:
        spark.run(python("import sys; sys.exit(3)"))
    assert not caught.value.retryable


def test_a_job_that_may_succeed_next_time_says_so():
    """Its exit code 75 is the one for that."""
    with pytest.raises(MergeConflict) as caught:
        spark.run(python("import sys; sys.exit(75)"))
    assert caught.value.retryable


def test_an_interrupted_command_leaves_no_job_behind(monkeypatch):
    """The job is told to end and waited for."""
    started = []
    wait = subprocess.Popen.wait

    def interrupted(process, timeout=None):
        if not started:
            started.append(process)
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        spark.run(python("import time; time.sleep(60)"))
    assert started[0].poll() is not None
    assert time.monotonic() - began < 20


def test_a_missing_spark_is_told_with_the_way_to_get_it(monkeypatch, tmp_path):
    """The library itself works without it."""
    monkeypatch.setattr(spark.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pyspark") as caught:
        spark.run_job("spark_jobs.merge", tmp_path / "shop.yaml")
    assert caught.value.hint == 'pip install "lakecdc[spark]"'
