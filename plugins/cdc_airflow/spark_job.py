"""Spark in a process of its own, its log in the task's."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cdc_airflow.job import Job
from cdc_airflow.operators import CdcOperator
from cdc_lib.errors import CdcError, ConfigError, MergeError, load_error


class SparkJobOperator(CdcOperator):
    """Runs a module of ``spark_jobs`` in a process of its own.

    The job ends with the task: when the task is killed, when the worker is, and when the machine's memory runs out.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._job: Job | None = None

    def run_job(
        self,
        module: str,
        *arguments: str,
        by: str = "",
        handed: Mapping[str, str] | None = None,
        good: Collection[int] = (0,),
    ) -> int:
        """Run a job for the task's source to its end.

        Args:
            module: one of ``spark_jobs``.
            arguments: its other arguments.
            by: who asks, for the cursor's record.
            handed: variables with secrets that only Airflow knows.
            good: exit statuses that are no failure.

        Returns:
            Its exit status.

        Raises:
            CdcError: the job's own; one that may be tried again where it left none.
        """
        command = [sys.executable, "-m", module, "--config", str(Path(self.source_file).resolve())]
        command += [*(("--by", by) if by else ()), *arguments]
        # Spark leaves folders where it works; they go with the job.
        with tempfile.TemporaryDirectory(prefix="cdc-spark-") as folder:
            error = Path(folder) / "error.json"
            command[3:3] = ["--error", str(error)]
            self._job = Job(command, {**job_environment(), **(handed or {})}, Path(folder))
            status = self._job.run(lambda line: self.log.info("%s", line))
            if status not in good:
                raise error_of(status, error)
        return status

    def on_kill(self) -> None:
        """End the job and all that it started."""
        if self._job is not None:
            self._job.stop()


def job_environment() -> dict[str, str]:
    """Return this process's variables without Airflow's own, among which are its keys, and with a path to the jobs.

    Raises:
        ConfigError: the jobs or Spark are not installed.
    """
    for module in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"Spark jobs need {module}, which is not installed", hint='pip install "lakecdc[spark]"')
    spec = importlib.util.find_spec("spark_jobs")
    root = str(Path(spec.origin).parents[1]) if spec is not None and spec.origin else ""
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "_AIRFLOW"))}
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def error_of(status: int, file: Path) -> CdcError:
    """Return the error that ended a job.

    Args:
        status: the job's exit status, which is no success.
        file: where the job leaves its error. Without one it was killed, ran out of memory, or has a defect.
    """
    if file.is_file():
        return load_error(file.read_bytes())
    what = f"the Spark job ended with status {status} and named no error; see its output above"
    return _TryAgain(what, hint="Nothing is lost: the next try takes up the same work.", status=status)


class _TryAgain(MergeError):
    """The job may come through the next time."""

    retryable = True
