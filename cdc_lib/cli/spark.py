"""The merge job, which runs in a process of its own: the library itself never imports Spark."""

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


def merge(config: Path) -> None:
    """Run ``spark_jobs.merge`` for one source file, its output going where ours goes.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        MergeError: the job failed; what it said stands in the output.
    """
    for module in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"merging needs {module}, which is not installed", hint='pip install "lakecdc[spark]"')
    run([sys.executable, "-m", "spark_jobs.merge", "--config", str(config)])


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
        raise MergeConflict("the merge job could not finish this time", hint="What it said stands above. Run it again.")
    if code != 0:
        raise MergeError(
            f"the merge job ended with code {code}",
            hint="What it said stands above. Nothing is lost: the next merge takes up the same batches.",
        )
