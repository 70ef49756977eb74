"""Spark in a process of its own, its log in the task's."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.job import Job
from cdc_airflow.operators import CdcOperator
from cdc_lib import errors
from cdc_lib.errors import ConfigError, MergeError

TRY_AGAIN = 75
"""Exit status by which the job says that its failure may go away."""

REMEMBERED = 50
"""Lines of the job's output that are searched for the error that ended it."""


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
            arguments: what else it is told.
            by: who asks, for the cursor's record.
            handed: variables with secrets that only Airflow knows.
            good: exit statuses that are no failure.

        Returns:
            Its exit status.

        Raises:
            AirflowFailException: the job said that trying again does not help.
            MergeError: it ended otherwise.
        """
        command = [sys.executable, "-m", module, "--config", str(Path(self.source_file).resolve())]
        command += [*(("--by", by) if by else ()), *arguments]
        last: deque[str] = deque(maxlen=REMEMBERED)

        def say(line: str) -> None:
            last.append(line)
            self.log.info("%s", line)

        # Spark leaves folders where it works; they go with the job.
        with tempfile.TemporaryDirectory(prefix="cdc-spark-") as folder:
            self._job = Job(command, {**job_environment(), **(handed or {})}, Path(folder))
            status = self._job.run(say)
        if status not in good:
            judge(status, list(last))
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


def judge(status: int, output: list[str]) -> None:
    """Turn the job's exit status into what Airflow does next.

    Raises:
        AirflowFailException: the job named an error that needs a hand.
        MergeError: it asked to be tried again, or ended without a word: killed, out of memory, a defect.
    """
    if status == 0:
        return
    told = next((line for line in reversed(output) if is_told_error(line)), None)
    if told is not None and status != TRY_AGAIN:
        raise AirflowFailException(told)
    why = told or f"the Spark job ended with status {status} and named no error; its output stands above"
    raise _TryAgain(why, hint="Nothing is lost: the next try takes up the same work.", status=status)


def is_told_error(line: str) -> bool:
    """Whether a line of output is an error of the tree, as the job writes its last one."""
    kind = getattr(errors, line.partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, errors.CdcError)


class _TryAgain(MergeError):
    """The job may come through the next time."""

    retryable = True
