"""Runs Spark jobs in a separate process: the library never imports Spark."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from cdc_lib.errors import ConfigError, MergeConflict, MergeError, load_error

DRIFT = 3
"""Exit code of a comparison with differences."""

PATIENCE = 30
"""Seconds that a job has for closing its Spark session after a stop signal."""


def run_job(module: str, config: Path, *arguments: str, good: Collection[int] = (0,), to_stderr: bool = False) -> None:
    """Run a job for one source file on the same output streams; its error is raised here, and printed once.

    Args:
        module: a module of ``spark_jobs``.
        config: the source file.
        arguments: further arguments.
        good: exit codes that are not failures.
        to_stderr: whether its output goes to the error stream.

    Raises:
        ConfigError: Spark or the jobs are not installed.
        CdcError: the error of the job.
        MergeError: the job failed without an error document.
    """
    for needed in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(needed) is None:
            hint = 'pip install "lakecdc[spark]"'
            raise ConfigError(f"{module} needs {needed}, which is not installed", hint=hint)
    with tempfile.TemporaryDirectory(prefix="cdc-job-") as folder:
        error_file = Path(folder) / "error.json"
        command = [sys.executable, "-m", module, "--config", str(config), "--error", str(error_file), *arguments]
        run(command, good, to_stderr=to_stderr, error_file=error_file)


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
