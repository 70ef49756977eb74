from __future__ import annotations

import subprocess
import sys
import time

import pytest

from cdc_lib.cli import spark
from cdc_lib.errors import ConfigError, MergeConflict, MergeError, dump_error, load_error
from spark_jobs import job


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


def test_a_job_that_a_signal_ended_may_succeed_next_time():
    """Memory may have been short."""
    with pytest.raises(MergeConflict, match="signal 9") as caught:
        spark.run(python("import os; os.kill(os.getpid(), 9)"))
    assert caught.value.retryable


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no captured table is named no.such", hint="cdc doctor counts them.", source="shop"),
        MergeConflict("another commit came first", hint="Run it again.", table="shop.ordérs", rows=3),
    ],
)
def test_the_error_that_a_job_left_is_the_error(error, tmp_path):
    """With its class, on which the exit status hangs, its place and its hint."""
    left = tmp_path / "error.json"
    left.write_bytes(dump_error(error))
    with pytest.raises(type(error)) as caught:
        spark.run(python("import sys; sys.exit(75)"), left=left)
    assert (str(caught.value), caught.value.hint, caught.value.context) == (str(error), error.hint, error.context)


def test_an_error_of_another_class_is_that_of_the_tree_above_it():
    """A job may have one of its own."""

    class Own(MergeConflict):
        pass

    assert type(load_error(dump_error(Own("x")))) is MergeConflict


def test_a_job_leaves_its_error_where_it_is_told_to_and_prints_none(tmp_path, capsys):
    """Whoever started it prints it once."""
    (tmp_path / "shop.yaml").write_text("tables: []")
    left = tmp_path / "error.json"
    assert (
        job.ended(job.arguments_of("job", ""), ["--config", str(tmp_path / "shop.yaml"), "--error", str(left)], None)
        == 2
    )
    assert capsys.readouterr() == ("", "")
    assert isinstance(load_error(left.read_bytes()), ConfigError)


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
