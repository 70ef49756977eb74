"""Runs Spark jobs: in a process of their own, or on the source's Spark server. The library never imports Spark."""

from __future__ import annotations

import importlib.util
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from cdc_lib.cli.context import config_of
from cdc_lib.config import Loaded, SourceConfig
from cdc_lib.errors import ConfigError, MergeConflict, MergeError, load_error
from cdc_lib.jobs.client import SparkServer, job_request, raise_for
from cdc_lib.jobs.request import JobName

DRIFT = 3
"""Exit code of a comparison with differences."""

PATIENCE = 30
"""Seconds that a job has for closing its Spark session after a stop signal."""


def run_job(
    job: JobName,
    loaded: Loaded,
    *arguments: str,
    good: Collection[int] = (0,),
    to_stderr: bool = False,
    report: Path | None = None,
) -> None:
    """Run a job for one source; its output goes to this process's streams, and its error is raised here, to be printed once.

    Args:
        job: which one.
        loaded: the source.
        arguments: further arguments.
        good: exit codes that are not failures.
        to_stderr: whether its output goes to the error stream.
        report: where its report is written.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        SparkUnavailable: the Spark server does not answer.
        CdcError: the error of the job.
        MergeError: the job failed without an error document.
    """
    config = config_of(loaded)
    if config.merge.spark_server is not None:
        _on_server(config, job, *arguments, good=good, to_stderr=to_stderr, report=report)
        return
    for needed in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(needed) is None:
            raise ConfigError(
                f"the Spark job {job} needs {needed}, which is not installed", hint='pip install "lakecdc[spark]"'
            )
    with tempfile.TemporaryDirectory(prefix="cdc-job-") as folder:
        error_file = Path(folder) / "error.json"
        command = [sys.executable, "-m", f"spark_jobs.{job}", "--config", str(loaded.path), "--error", str(error_file)]
        command += ["--report", str(report)] if report is not None else []
        run([*command, *arguments], good, to_stderr=to_stderr, error_file=error_file)


def _on_server(
    config: SourceConfig, job: JobName, *arguments: str, good: Collection[int], to_stderr: bool, report: Path | None
) -> None:
    """Run a job on the Spark server of a source, and cancel it when this process is interrupted."""
    assert config.merge.spark_server is not None
    server = SparkServer(config.merge.spark_server)
    key = f"{config.source} {job} cdc {secrets.token_hex(8)}"  # each command is work of its own
    request = job_request(config, job, *arguments, key=key, report=report is not None)
    out = sys.stderr if to_stderr else sys.stdout
    started = server.submit(request)
    try:
        ended = server.follow(started, lambda line: print(line, file=out, flush=True))
    except BaseException:
        server.cancel(started.id)
        raise
    if report is not None and ended.report is not None:
        report.write_text(ended.report)
    raise_for(ended, good)


def run(
    command: list[str], good: Collection[int] = (0,), *, to_stderr: bool = False, error_file: Path | None = None
) -> None:
    """Run a command to its end, or stop it when this process gets a stop signal.

    Args:
        command: program and arguments.
        good: exit codes that are not failures.
        to_stderr: whether its output goes to the error stream.
        error_file: the file to which it writes its error.

    Raises:
        CdcError: the error from that file.
        MergeConflict: a signal ended it.
        MergeError: it failed with another exit code, and without an error document.
    """
    sys.stdout.flush()
    with subprocess.Popen(command, stdout=sys.stderr if to_stderr else None) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if code in good:
        return
    if error_file is not None and error_file.is_file():
        raise load_error(error_file.read_bytes())
    if code < 0:
        raise MergeConflict(
            f"the Spark job was ended by signal {-code}, possibly because it ran out of memory",
            hint="Nothing is lost. Run it again; where it happens again, raise or lower merge.driver_memory.",
        )
    raise MergeError(
        f"the Spark job ended with code {code}",
        hint="It named no error of its own: what it printed last is the cause. The cursors did not move.",
    )
