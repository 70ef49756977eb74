"""A job on a Spark server, seen from a task and from the triggerer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk.log import mask_secret
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from cdc_airflow.airflow_versions import ended_by_person
from cdc_airflow.hooks import CdcHook
from cdc_lib.errors import ConfigError, SparkUnavailable

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.jobs.client import SparkServer
    from cdc_lib.jobs.request import JobName, JobStatus

SOON = 20.0
"""Seconds for which a task waits for its job before it is deferred: most merges end sooner, and a second process for the rest of
a task costs more CPU than it saves."""

LOOK = 2.0
"""Seconds between two looks of the triggerer at a job."""

SILENCE = 60.0
"""Seconds for which a server may give the triggerer no answer."""


class ServerJob:
    """A job that runs on the Spark server of a source.

    Args:
        hook: of the source.
        job_id: of the job.
        offset: where its output was read to.
        spark_ui: address of Spark's pages; None where they are switched off, or before the server was asked.
    """

    def __init__(self, hook: CdcHook, job_id: str, offset: int = 0, spark_ui: str | None = None) -> None:
        self.id = job_id
        self.offset = offset
        self.spark_ui = spark_ui
        self._server = server_of(hook)

    @classmethod
    def submitted(
        cls,
        hook: CdcHook,
        context: Context,
        job: JobName,
        *arguments: str,
        by: str,
        handed: Mapping[str, str] | None,
        report: bool,
    ) -> ServerJob:
        """Start a job, or take up the one that an earlier try of the task started.

        Raises:
            SparkUnavailable: the server does not answer.
        """
        from cdc_lib.jobs.client import job_request

        ti = context["ti"]
        key = f"airflow {ti.dag_id} {ti.run_id} {ti.task_id} {ti.map_index}"
        request = job_request(hook.config, job, *arguments, key=key, handed=handed, report=report, by=by)
        for secret in request.secrets.values():
            mask_secret(secret)
        submitted = server_of(hook).submit(request)
        return cls(hook, submitted.id, spark_ui=submitted.spark_ui)

    def ends_soon(self, log: Any) -> bool:
        """Wait a little, log what the job prints, and return whether it has ended."""
        until = time.monotonic() + SOON
        while (left := until - time.monotonic()) > 0:
            if self.look(log, left).has_ended:
                return True
        return False

    def followed(self, log: Any, good: Collection[int]) -> str | None:
        """Log what the job prints up to its end, and return its report.

        Raises:
            CdcError: the job's own.
            SparkUnavailable: the server does not answer, or was restarted.
        """
        from cdc_lib.jobs.client import raise_for

        job = self._server.follow(self._server.job(self.id, self.offset), lambda line: log.info("%s", line))
        self.spark_ui = job.spark_ui
        raise_for(job, good)
        return job.report

    def stop(self) -> None:
        """End the job."""
        self._server.cancel(self.id)

    def look(self, log: Any, wait: float) -> JobStatus:
        """Return the job's state, and log what it has printed since the last look.

        Args:
            log: of the task or the trigger.
            wait: seconds that the server may wait for a new line or the end of the job.
        """
        job = self._server.job(self.id, self.offset, wait)
        self.offset = job.offset
        for line in job.lines:
            log.info("%s", line)
        return job


class SparkJobTrigger(BaseTrigger):
    """Waits for the end of a job on a Spark server; its log lines are shown in the task's log.

    Args:
        source_file: the source's YAML file.
        job_id: of the job.
        offset: where its output was read to.
        spark_conn_id: id of the connection that names the server; None for the one of the file, or its ``merge.spark_server``.
    """

    def __init__(
        self, source_file: str, job_id: str, offset: int, spark_conn_id: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.source_file = source_file
        self.job_id = job_id
        self.offset = offset
        self.spark_conn_id = spark_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        own = {
            "source_file": self.source_file,
            "job_id": self.job_id,
            "offset": self.offset,
            "spark_conn_id": self.spark_conn_id,
        }
        return "cdc_airflow.server_job.SparkJobTrigger", own

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at the job every few seconds; the task itself finds out how it ended."""
        job = await sync_to_async(self._job, thread_sensitive=False)()
        try:
            await self._until_ended(job)
        except asyncio.CancelledError:
            if await sync_to_async(ended_by_person)(self):
                await self.on_kill()
            raise
        yield TriggerEvent({"job": self.job_id, "offset": job.offset})  # type: ignore[no-untyped-call]

    async def _until_ended(self, job: ServerJob) -> None:
        look = sync_to_async(job.look, thread_sensitive=False)
        self.log.info("The triggerer waits for job %s on the Spark server.", self.job_id)
        silent_since: float | None = None
        while True:
            try:
                status = await look(self.log, 0)
                silent_since = None
            except SparkUnavailable as error:
                silent_since = silent_since or time.monotonic()
                self.log.warning("%s", error)
                if time.monotonic() - silent_since > SILENCE:
                    break
            else:
                if status.has_ended and not status.lines:
                    break
            await asyncio.sleep(LOOK)

    async def on_kill(self) -> None:
        """End the job: a person ended its task."""
        with suppress(SparkUnavailable):  # then it ended with its server
            await sync_to_async(lambda: self._job().stop(), thread_sensitive=False)()

    def _job(self) -> ServerJob:
        return ServerJob(CdcHook(self.source_file, spark_conn_id=self.spark_conn_id), self.job_id, self.offset)


def server_of(hook: CdcHook) -> SparkServer:
    """Return the Spark server of a source.

    Raises:
        ConfigError: neither the source file nor a connection names one any longer, or its token is not set.
    """
    server = hook.spark.client()
    if server is None:
        raise ConfigError(
            "the source no longer has the Spark server on which this job runs",
            hint="Clear the task: it then starts the job again.",
            source=hook.config.source,
        )
    return server
