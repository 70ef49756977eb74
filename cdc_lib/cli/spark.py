"""Spark jobs, which run in a process of their own: the library itself never imports Spark."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from cdc_lib.errors import ConfigError, MergeConflict, MergeError, load_error

DRIFT = 3
"""The exit code of a comparison that found differences."""

PATIENCE = 30
"""Seconds that a job which was told to end has for closing its Spark session."""


def run_job(module: str, config: Path, *arguments: str, good: Collection[int] = (0,), to_stderr: bool = False) -> None:
    """Run a job for one source file, its output going where ours goes; its error comes back as ours, and is printed once.

    Args:
        module: one of ``spark_jobs``.
        config: the source file.
        arguments: what else it is told.
        good: exit codes that are no failure.
        to_stderr: whether its output goes to our error stream.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        CdcError: that of the job.
        MergeError: the job ended without one.
    """
    for needed in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(needed) is None:
            hint = 'pip install "lakecdc[spark]"'
            raise ConfigError(f"{module} needs {needed}, which is not installed", hint=hint)
    with tempfile.TemporaryDirectory(prefix="cdc-job-") as folder:
        left = Path(folder) / "error.json"
        command = [sys.executable, "-m", module, "--config", str(config), "--error", str(left), *arguments]
        run(command, good, to_stderr=to_stderr, left=left)


def run(command: list[str], good: Collection[int] = (0,), *, to_stderr: bool = False, left: Path | None = None) -> None:
    """Run a command to its end, or end it when this process is told to stop.

    Args:
        command: program and arguments.
        good: exit codes that are no failure.
        to_stderr: whether its output goes to our error stream.
        left: the file in which it leaves the error that ends it.

    Raises:
        CdcError: the one that it left.
        MergeConflict: a signal ended it.
        MergeError: it ended with another code, and left none.
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
    if left is not None and left.is_file():
        raise load_error(left.read_bytes())
    if code < 0:
        raise MergeConflict(
            f"the Spark job was ended by signal {-code}, possibly because it ran out of memory",
            hint="Nothing is lost. Run it again; where it happens again, raise or lower merge.driver_memory.",
        )
    raise MergeError(
        f"the Spark job ended with code {code}",
        hint="It named no error of its own: what it printed last is the cause. The cursors did not move.",
    )
