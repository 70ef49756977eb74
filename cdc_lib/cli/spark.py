"""Spark jobs, which run in a process of their own: the library itself never imports Spark."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from cdc_lib.errors import ConfigError, MergeConflict, MergeError

TRY_AGAIN = 75
"""The job's exit code for a failure that may be gone the next time."""

DRIFT = 3
"""The exit code of a comparison that found differences."""

PATIENCE = 30
"""Seconds that a job which was told to end has for closing its Spark session."""


def run_job(module: str, config: Path, *arguments: str, good: Collection[int] = (0,), to_stderr: bool = False) -> None:
    """Run a job for one source file, its output going where ours goes.

    Args:
        module: one of ``spark_jobs``.
        config: the source file.
        arguments: what else it is told.
        good: exit codes that are no failure.
        to_stderr: whether its output goes to our error stream.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        MergeError: the job failed; what it said stands in the output.
    """
    for needed in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(needed) is None:
            hint = 'pip install "lakecdc[spark]"'
            raise ConfigError(f"{module} needs {needed}, which is not installed", hint=hint)
    run([sys.executable, "-m", module, "--config", str(config), *arguments], good, to_stderr=to_stderr)


def run(command: list[str], good: Collection[int] = (0,), *, to_stderr: bool = False) -> None:
    """Run a command to its end, or end it when this process is told to stop.

    Args:
        command: program and arguments.
        good: exit codes that are no failure.
        to_stderr: whether its output goes to our error stream.

    Raises:
        MergeConflict: it may succeed the next time.
        MergeError: it ended with another code.
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
    if code == TRY_AGAIN:
        raise MergeConflict("the Spark job could not finish this time", hint="What it said stands above. Run it again.")
    if code not in good:
        raise MergeError(
            f"the Spark job ended with code {code}",
            hint="What it said stands above. Nothing is lost: run again, it takes up the same work.",
        )
