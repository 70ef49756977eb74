"""Spark jobs of a source: in a process of the task, or on a Spark server. The job's log is part of the task's log."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdc_airflow.errors import errors_first
from cdc_airflow.job import Job
from cdc_airflow.links import SparkUiLink
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.server_job import ServerJob, SparkJobTrigger
from cdc_lib.errors import CdcError, ConfigError, MergeError, load_error
from cdc_lib.model.spark_application import APPLICATION_FILE, SparkApplication

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

    from cdc_lib.jobs.request import JobName


class SparkJobOperator(CdcOperator):
    """Runs a Spark job.

    Without a Spark server in the source file or its connection, the job is a process of the task, and ends with it: when the task is
    killed, when the worker is, and when the machine's memory runs out. With a Spark server, the server runs it. A task that is tried
    again takes up the job that its last try started, if it still runs.

    Args:
        deferrable: whether the task leaves its slot while the server runs a long job; a triggerer waits for its end.
    """

    operator_extra_links: Collection[BaseOperatorLink] = (SparkUiLink(),)

    def __init__(self, *, deferrable: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable
        self._job: Job | ServerJob | None = None
        self._own_pages: str | None = None

    @property
    def spark_ui(self) -> str | None:
        """Address of the pages of the Spark that runs the job.

        The Spark of a process of the task ends with it: then it is the address by ``merge.application_url``. None without pages.
        """
        return self._job.spark_ui if isinstance(self._job, ServerJob) else self._own_pages

    def run_job(
        self,
        context: Context,
        job: JobName,
        *arguments: str,
        by: str = "",
        handed: Mapping[str, str] | None = None,
        good: Collection[int] = (0,),
        report: bool = False,
    ) -> str | None:
        """Run a job for the task's source to its end.

        On a server, a job that takes longer ends this call: the task is deferred, and :meth:`resume` continues.

        Args:
            context: of the task.
            job: which one.
            arguments: its other arguments.
            by: who asks, for the cursor's record.
            handed: variables with secrets that only Airflow knows.
            good: exit statuses that are no failure.
            report: whether the job leaves a report.

        Returns:
            Its report, None without one.

        Raises:
            CdcError: the job's own; one that may be tried again where it left none.
        """
        hook = self.hook()
        spark = hook.spark
        if spark.server is None:
            master = ("--spark-master", spark.master) if spark.master is not None else ()
            given = (*master, *(("--by", by) if by else ()), *arguments)
            return self._in_process(context, job, *given, handed=handed, good=good, report=report)
        self._job = ServerJob.submitted(hook, context, job, *arguments, by=by, handed=handed, report=report)
        self._link_pages(context)
        if not self.deferrable or self._job.ends_soon(self.log):
            return self._job.followed(self.log, good)
        return self.defer(
            trigger=SparkJobTrigger(self.source_file, self._job.id, self._job.offset, self.spark_conn_id),
            method_name="resume",
            kwargs={"good": list(good), "arguments": list(arguments)},
        )

    def resume(self, context: Context, event: dict[str, Any], good: list[int], arguments: list[str]) -> Any:
        """Continue after the server's job has ended.

        Args:
            context: of the task.
            event: of the trigger: the job, and where its output was read to.
            good: exit statuses that are no failure.
            arguments: of the job.

        Raises:
            CdcError: that of the job.
        """
        with errors_first(self.log):
            self._job = ServerJob(self.hook(), event["job"], event["offset"])
            return self.finished(context, self._job.followed(self.log, tuple(good)), arguments)

    def finished(self, context: Context, report: str | None, arguments: list[str]) -> Any:  # noqa: ARG002 - for operators with more to do
        """Continue the work of the task after a job that was deferred.

        Args:
            context: of the task.
            report: the job's report, None without one.
            arguments: of the job.
        """
        return None

    def on_kill(self) -> None:
        """End the job and all that it started."""
        if self._job is not None:
            self._job.stop()

    def _link_pages(self, context: Context) -> None:
        """Give the task its button now, and not when it has ended: people look at a job that takes long."""
        if self.spark_ui is not None:
            context["ti"].xcom_push(SparkUiLink().xcom_key, self.spark_ui)

    def _in_process(
        self,
        context: Context,
        job: JobName,
        *arguments: str,
        handed: Mapping[str, str] | None,
        good: Collection[int],
        report: bool,
    ) -> str | None:
        from cdc_lib.store import documents

        command = [sys.executable, "-m", f"spark_jobs.{job}", "--config", str(Path(self.source_file).resolve())]
        # Spark leaves folders where it works; they go with the job.
        with tempfile.TemporaryDirectory(prefix="cdc-spark-") as folder:
            error, left, pages = (Path(folder) / f"{name}.json" for name in ("error", "report", "application"))
            command[3:3] = ["--error", str(error)]
            command += [*(("--report", str(left)) if report else ()), *arguments]
            environment = {**job_environment(), **(handed or {}), APPLICATION_FILE: str(pages)}
            self._job = Job(command, environment, Path(folder))
            application: SparkApplication | None = None

            def heard(line: str) -> None:
                nonlocal application
                self.log.info("%s", line)
                if application is None and pages.is_file():
                    application = documents.load(SparkApplication, pages.read_bytes(), str(pages))
                    self._own_pages = application.page
                    self._link_pages(context)

            try:
                status = self._job.run(heard)
            finally:
                self._own_pages = application.ended if application is not None else None
            if status not in good:
                raise error_of(status, error)
            return left.read_text() if left.is_file() else None


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
