"""The jobs of a server: they wait for a slot, run, and are remembered for a while after their end."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.errors import SparkUnavailable, dump_error
from cdc_lib.jobs.request import ENDED, JobRequest, JobStatus, ServerStatus, State
from cdc_lib.jobs.secrets import named_variables
from spark_jobs.runtime.attach import OWN_FILE_SYSTEMS, TAG
from spark_jobs.runtime.ui import ui_address
from spark_jobs.server.bucket_keys import BucketKeys
from spark_jobs.server.gateways import Gateway, open_gateway
from spark_jobs.server.output import lines_from
from spark_jobs.server.process import JobStart, run_job

log = logging.getLogger(__name__)

REMEMBERED = 200
"""Number of jobs that are remembered after their end, with their output."""

PATIENCE = 10
"""Seconds that a cancelled job has before it is killed."""

SEE_OUTPUT = (
    "See the server's output; start it again if Java has ended. Nothing is lost: the next try takes up the same work."
)


@dataclass(slots=True, eq=False)
class ServedJob:
    """One job of a server.

    Args:
        id: chosen by the server.
        request: what to run.
        folder: where it works.
        own_file_systems: whether another source uses its bucket with other keys.
        spark_ui: address of Spark's pages; None where they are switched off.
    """

    id: str
    request: JobRequest
    folder: Path
    own_file_systems: bool
    spark_ui: str | None = None
    state: State = "waiting"
    exit_code: int | None = None
    error: dict[str, Any] | None = None
    report: str | None = None
    began: float | None = None
    ended: float | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def output(self) -> Path:
        """The file of its output."""
        return self.folder / "output.log"

    @property
    def config(self) -> Path:
        """The values of its source, which exist while it runs: also those that came from the environment."""
        return self.folder / f"{self.request.source}.json"

    @property
    def has_ended(self) -> bool:
        """Whether it no longer runs, and will not."""
        return self.state in ENDED

    def status(self, offset: int | None = None) -> JobStatus:
        """Return its state.

        Args:
            offset: where in the output to begin, in bytes; None leaves the output out.
        """
        state = self.state  # before the output: no line follows the end
        lines, after = lines_from(self.output, offset, ended=state in ENDED) if offset is not None else ((), 0)
        return JobStatus(
            id=self.id,
            key=self.request.key,
            job=self.request.job,
            source=self.request.source,
            state=state,
            exit_code=self.exit_code,
            error=self.error,
            report=self.report,
            lines=lines,
            offset=after,
            seconds=round((self.ended or time.monotonic()) - self.began, 3) if self.began is not None else 0,
            spark_ui=self.spark_ui,
        )

    def start(self, gateway: Gateway) -> JobStart:
        """Write the values of its source, and return what its process gets."""
        self.config.write_text(json.dumps(self.request.config))
        arguments = ["--values", str(self.config), "--error", str(self.folder / "error.json")]
        arguments += [f"--by={self.request.by}"] if self.request.by else []
        arguments += ["--report", str(self.folder / "report.json")] if self.request.report else []
        variables = {**self.request.secrets, **gateway.variables, TAG: self.id}
        if self.own_file_systems:
            variables[OWN_FILE_SYSTEMS] = "1"
        hidden = named_variables(self.request.config) - variables.keys()
        every = (*arguments, *self.request.arguments)
        return JobStart(self.request.job, every, self.folder, self.output, variables, hidden)


class Jobs:
    """All jobs of a server; safe to share between threads.

    Args:
        spark: the session of the server.
        processes: starts the processes of jobs.
        slots: number of jobs that run at the same time.
        folder: where jobs work; removed at the end.
    """

    def __init__(self, spark: SparkSession, processes: ForkServerContext, slots: int, folder: Path) -> None:
        self._spark = spark
        self._spark_ui = ui_address(spark.sparkContext)
        self._processes = processes
        self._slots = slots
        self._folder = folder
        self._jobs: dict[str, ServedJob] = {}
        self._bucket_keys = BucketKeys()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="job")

    def submit(self, request: JobRequest) -> ServedJob:
        """Start a job; a job with the same request that has not ended is returned, one with another request is cancelled."""
        with self._lock:
            for other in [job for job in self._jobs.values() if job.request.key == request.key and not job.has_ended]:
                if other.request.is_same_work(request) and not other.cancelled.is_set():
                    return other
                _cancel(other)
            job_id = secrets.token_hex(8)
            folder = self._folder / job_id
            folder.mkdir(mode=0o700)
            others = self._bucket_keys.are_others(request.config, request.secrets)
            job = self._jobs[job_id] = ServedJob(job_id, request, folder, others, self._spark_ui)
            self._forget_old()
        self._threads.submit(self._run, job)
        return job

    def cancel(self, job: ServedJob) -> None:
        """End a job; nothing happens if it has ended."""
        with self._lock:
            _cancel(job)

    def find(self, job_id: str) -> ServedJob | None:
        """Return a job, None if it is not known."""
        return self._jobs.get(job_id)

    def listed(self) -> list[ServedJob]:
        """Return all jobs that are remembered, in the order of their requests."""
        with self._lock:
            return list(self._jobs.values())

    def status(self) -> ServerStatus:
        """Return what the server says of itself."""
        of_spark: Any = self._spark
        runtime = of_spark._jvm.java.lang.Runtime.getRuntime()  # noqa: SLF001 - no public way to Java's memory
        context, states = self._spark.sparkContext, [job.state for job in self.listed()]
        return ServerStatus(
            spark=self._spark.version,
            master=str(context.master),
            application=str(context.applicationId),
            slots=self._slots,
            running=states.count("running"),
            waiting=states.count("waiting"),
            heap_mib=(runtime.totalMemory() - runtime.freeMemory()) >> 20,
        )

    def close(self) -> None:
        """Cancel all jobs, and wait until they have ended."""
        for job in self.listed():
            self.cancel(job)
        self._threads.shutdown(wait=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.has_ended]
        for job in ended[: max(0, len(ended) - REMEMBERED)]:
            del self._jobs[job.id]
            shutil.rmtree(job.folder, ignore_errors=True)

    def _run(self, job: ServedJob) -> None:
        """Run a job to its end; its thread does nothing else."""
        with self._lock:
            if job.has_ended:  # cancelled while it waited
                return
            job.state, job.began = "running", time.monotonic()
        try:
            job.exit_code = self._process(job)
            job.error, job.report = _left_by(job.folder)
        except Exception as error:
            # Spark's Java process has ended, or the disk is full: the job has failed, the server answers.
            log.exception("job %s of %s failed in the server", job.id, job.request.source)
            failed = SparkUnavailable(
                f"the Spark server could not run the job: {type(error).__name__}", hint=SEE_OUTPUT
            )
            job.error = json.loads(dump_error(failed))
        job.ended = time.monotonic()
        job.state = "cancelled" if job.cancelled.is_set() and job.exit_code != 0 else "ended"

    def _process(self, job: ServedJob) -> int:
        with open_gateway(self._spark) as gateway:
            process = self._processes.Process(target=run_job, args=(job.start(gateway),), name=f"job {job.id}")
            process.start()
            try:
                while not wait([process.sentinel], timeout=0.2):
                    if job.cancelled.is_set():
                        process.terminate()
                        process.join(PATIENCE)
                        process.kill()
                process.join()
            finally:
                # A process that was killed leaves its work in Spark running.
                self._spark.sparkContext.cancelJobsWithTag(job.id)
                job.config.unlink(missing_ok=True)
            return process.exitcode or 0


def _cancel(job: ServedJob) -> None:
    job.cancelled.set()
    if job.state == "waiting":
        job.state = "cancelled"


def _left_by(folder: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Return the error and the report that a job left."""
    error, report = folder / "error.json", folder / "report.json"
    return (
        json.loads(error.read_bytes()) if error.is_file() else None,
        report.read_text() if report.is_file() else None,
    )
