"""The merge task: Spark in a process of its own, its log in the task's."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from cdc_airflow.job import Job
from cdc_airflow.operators import CdcOperator
from cdc_lib import errors
from cdc_lib.config.credentials import handed_on
from cdc_lib.errors import ConfigError, MergeError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook

TRY_AGAIN = 75
"""Exit status by which the job says that its failure may go away."""

REMEMBERED = 50
"""Lines of the job's output that are searched for the error that ended it."""


class MergeOperator(CdcOperator):
    """Merge what the lake cursor has in flight; skipped when it has nothing.

    The job adopts the plan from the cursor, so that it is the same merge whoever starts it, however often. It ends with
    the task: when the task is killed, when the worker is, and when the machine's memory runs out.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._job: Job | None = None

    def work(self, hook: CdcHook, context: Context) -> None:
        """Run the job to its end.

        Raises:
            AirflowSkipException: there is nothing to merge.
            AirflowFailException: the job said that trying again does not help.
            MergeError: it ended otherwise.
        """
        by = self.by(context)
        if hook.lake_pipeline().plan_merge(by=by) is None:
            raise AirflowSkipException("nothing to merge")
        command = [sys.executable, "-m", "spark_jobs.merge", "--config", str(Path(self.source_file).resolve())]
        last: deque[str] = deque(maxlen=REMEMBERED)

        def say(line: str) -> None:
            last.append(line)
            self.log.info("%s", line)

        # Spark leaves folders where it works; they go with the job.
        with tempfile.TemporaryDirectory(prefix="cdc-merge-") as folder:
            self._job = Job([*command, "--by", by], {**job_environment(), **job_secrets(hook)}, Path(folder))
            status = self._job.run(say)
        judge(status, list(last))

    def on_kill(self) -> None:
        """End the job and all that it started."""
        if self._job is not None:
            self._job.stop()


def job_secrets(hook: CdcHook) -> dict[str, str]:
    """Return the secrets that only Airflow knows and the job may need, because it reads rows back from the source."""
    config = hook.config
    if not config.reselect.is_on or (config.server.connection is None and config.mask_key_connection is None):
        return {}
    return handed_on(replace(hook.credentials, mask_key=hook.mask_key))


def job_environment() -> dict[str, str]:
    """Return this process's variables without Airflow's own, among which are its keys, and with a path to the jobs.

    Raises:
        ConfigError: the jobs or Spark are not installed.
    """
    for module in ("pyspark", "spark_jobs"):
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"merging needs {module}, which is not installed", hint='pip install "lakecdc[spark]"')
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
    why = told or f"the merge job ended with status {status} and named no error; its output stands above"
    raise _TryAgain(why, hint="Nothing is lost: the next try takes up the same batches.", status=status)


def is_told_error(line: str) -> bool:
    """Whether a line of output is an error of the tree, as the job writes its last one."""
    kind = getattr(errors, line.partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, errors.CdcError)


class _TryAgain(MergeError):
    """The job may come through the next time."""

    retryable = True
