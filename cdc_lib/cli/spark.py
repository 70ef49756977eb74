"""Spark jobs, which run in a process of their own: the library itself never imports Spark."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from cdc_lib.errors import ConfigError, MergeConflict, MergeError

TRY_AGAIN = 75
"""The job's exit code for a failure that may be gone the next time."""

PATIENCE = 30
"""Seconds that a job which was told to end has for closing its Spark session."""


def run_job(module: str, config: Path, *arguments: str) -> None:
    """Run a job for one source file, its output going where ours goes.

    Args:
        module: one of ``spark_jobs``.
        config: the source file.
        arguments: what else it is told.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        MergeError: the job failed; what it said stands in the output.
    """
    for needed in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(needed) is None:
            hint = 'pip install "lakecdc[spark]"'
            raise ConfigError(f"{module} needs {needed}, which is not installed", hint=hint)
    run([sys.executable, "-m", module, "--config", str(config), *arguments])


def run(command: list[str]) -> None:
    """Run a command to its end, or end it when this process is told to stop.

    Raises:
        MergeConflict: it may succeed the next time.
        MergeError: it ended with another code than 0.
    """
    sys.stdout.flush()
    with subprocess.Popen(command) as process:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if code == TRY_AGAIN:
        raise MergeConflict("the Spark job could not finish this time", hint="What it said stands above. Run it again.")
    if code != 0:
        raise MergeError(
            f"the Spark job ended with code {code}",
            hint="What it said stands above. Nothing is lost: run again, it takes up the same work.",
        )
