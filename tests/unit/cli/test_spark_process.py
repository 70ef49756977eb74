from __future__ import annotations

import subprocess
import sys
import time

import pytest

from cdc_lib.cli import job as cli_job
from cdc_lib.cli.job import run
from cdc_lib.config import Loaded
from cdc_lib.errors import ConfigError, MergeConflict, MergeError, dump_error, load_error
from spark_jobs import job
from tests.harness.lake.running import lake_config


def python(code):
    """A command that runs this code."""
    return [sys.executable, "-c", code]


def test_a_job_that_succeeds_raises_no_error():
    """No output of ours, no error."""
    run(python("pass"))


def test_a_job_that_fails_is_an_error_with_its_code():
    """Its output explains the failure."""
    with pytest.raises(MergeError, match="ended with code 3") as caught:
        run(python("import sys; sys.exit(3)"))
    assert not caught.value.retryable


def test_a_job_that_a_signal_ended_may_succeed_next_time():
    """Memory may have been short."""
    with pytest.raises(MergeConflict, match="signal 9") as caught:
        run(python("import os; os.kill(os.getpid(), 9)"))
    assert caught.value.retryable


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("no captured table is named no.such", hint="cdc doctor counts them.", source="shop"),
        MergeConflict("another commit came first", hint="Run it again.", table="shop.ordérs", rows=3),
    ],
)
def test_the_error_of_a_job_is_raised_again(error, tmp_path):
    """With its class, which decides the exit status, its context and its hint."""
    error_file = tmp_path / "error.json"
    error_file.write_bytes(dump_error(error))
    with pytest.raises(type(error)) as caught:
        run(python("import sys; sys.exit(75)"), error_file=error_file)
    assert (str(caught.value), caught.value.hint, caught.value.context) == (str(error), error.hint, error.context)


def test_an_error_of_another_class_is_that_of_the_tree_above_it():
    """A job may have one of its own."""

    class Own(MergeConflict):
        pass

    assert type(load_error(dump_error(Own("x")))) is MergeConflict


def test_a_job_writes_its_error_to_the_given_file_and_prints_none(tmp_path, capsys):
    """The parent process prints it once."""
    (tmp_path / "shop.yaml").write_text("tables: []")
    error_file = tmp_path / "error.json"
    assert (
        job.ended(
            job.arguments_of("job", ""), ["--config", str(tmp_path / "shop.yaml"), "--error", str(error_file)], None
        )
        == 2
    )
    assert capsys.readouterr() == ("", "")
    assert isinstance(load_error(error_file.read_bytes()), ConfigError)


def test_an_interrupted_command_leaves_no_job_running(monkeypatch):
    """The job gets a stop signal and is awaited."""
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
        run(python("import time; time.sleep(60)"))
    assert started[0].poll() is not None
    assert time.monotonic() - began < 20


def test_a_missing_spark_is_reported_with_its_install_command(monkeypatch, tmp_path):
    """The library itself works without it."""
    monkeypatch.setattr(cli_job.importlib.util, "find_spec", lambda _: None)
    loaded = Loaded("shop", tmp_path / "shop.yaml", config=lake_config(tmp_path))
    with pytest.raises(ConfigError, match="pyspark") as caught:
        cli_job.run_job("merge", loaded)
    assert caught.value.hint == 'pip install "lakecdc[spark]"'
