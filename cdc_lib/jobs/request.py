"""What a Spark server gets and answers, as JSON.

The server (``spark_jobs/server``) and its client (:mod:`cdc_lib.jobs.client`) share these models.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cdc_lib.config.source import SOURCE_NAME

JobName = Literal["merge", "verify", "maintain", "backfill", "erase", "probe"]
"""The jobs that a server runs: modules of ``spark_jobs``."""

OPTIONS: dict[JobName, frozenset[str]] = {
    "merge": frozenset(),
    "verify": frozenset({"--wait", "--statement-delay", "--repair"}),
    "maintain": frozenset({"--table", "--purge"}),
    "backfill": frozenset({"--since", "--until", "--into", "--copy-suffix", "--batches"}),
    "erase": frozenset({"--table", "--erasure"}),
    "probe": frozenset(),
}
"""The options that a request may give to a job, beside ``--spark-conf``: others name files of the server's machine."""

State = Literal["waiting", "running", "ended", "cancelled"]

ENDED: frozenset[State] = frozenset({"ended", "cancelled"})


class JobRequest(BaseModel):
    """One job for one source.

    Args:
        key: identifies the work, not the attempt: the same request with the key of a job that has not ended gets that job.
        job: which one.
        source: name of the source.
        config: the values of its source file, environment variables filled in.
        arguments: further arguments of the job.
        secrets: environment variables of the job, by name. The server keeps them in memory only.
        report: whether the job leaves a report.
        by: who asks, for the records; two attempts at the same work may differ in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str = Field(min_length=1, max_length=1000)
    job: JobName
    source: str = Field(pattern=SOURCE_NAME)
    config: dict[str, Any]
    arguments: tuple[str, ...] = ()
    secrets: dict[str, str] = Field(default_factory=dict, repr=False)
    report: bool = False
    by: str = ""

    @model_validator(mode="after")
    def _known_options(self) -> Self:
        options = self.arguments[: self.arguments.index("--")] if "--" in self.arguments else self.arguments
        allowed = OPTIONS[self.job] | {"--spark-conf"}
        for option in options:
            if option.startswith("-") and option.partition("=")[0] not in allowed:
                raise ValueError(f"the job {self.job} takes only {', '.join(sorted(allowed))} from a request")
        return self

    def is_same_work(self, other: JobRequest) -> bool:
        """Whether another request asks for the same, whoever asks."""
        return self.model_copy(update={"by": ""}) == other.model_copy(update={"by": ""})


class JobStatus(BaseModel):
    """What a server says of a job.

    Args:
        id: of the job, chosen by the server.
        key: of its request.
        job: which one.
        source: name of the source.
        state: whether it waits, runs or has ended.
        exit_code: of its process; None before it has ended, negative if a signal ended it.
        error: the error that ended it, as :func:`cdc_lib.errors.dump_error` writes it.
        report: its report, if it left one.
        lines: whole lines of its output from the asked offset on.
        offset: in the output, after those lines, in bytes.
        seconds: since it began; 0 while it waits.
        spark_ui: address of the pages of the server's Spark application; None where they are switched off.
    """

    id: str
    key: str
    job: JobName
    source: str
    state: State
    exit_code: int | None = None
    error: dict[str, Any] | None = None
    report: str | None = None
    lines: tuple[str, ...] = ()
    offset: int = 0
    seconds: float = 0
    spark_ui: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.state in ENDED


class ServerStatus(BaseModel):
    """What a server says of itself.

    Args:
        spark: version of Spark.
        master: where Spark runs its tasks.
        application: Spark's id of the application.
        slots: number of jobs that run at the same time.
        running: number of jobs that run.
        waiting: number of jobs that wait for a slot.
        heap_mib: memory of Java's objects in MiB, those that wait for its garbage collector included.
    """

    spark: str
    master: str
    application: str
    slots: int
    running: int
    waiting: int
    heap_mib: int
