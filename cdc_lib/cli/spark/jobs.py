"""``cdc spark jobs``: what a Spark server runs and has run."""

from __future__ import annotations

from dataclasses import dataclass

import typer
from rich.text import Text

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, table
from cdc_lib.errors import ConfigError
from cdc_lib.jobs.client import SparkServer
from cdc_lib.jobs.request import JobStatus


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job of a server.

    Args:
        id: chosen by the server.
        job: which one: ``merge``.
        source: name of the source.
        state: ``waiting``, ``running``, ``ended`` or ``cancelled``.
        seconds: since it began, or that it took.
        exit_code: of its process; None before it has ended.
        error: the message of the error that ended it; empty without one.
    """

    id: str
    job: str
    source: str
    state: str
    seconds: float
    exit_code: int | None
    error: str


def jobs(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the jobs of the Spark server that a source's file names: those of all sources that wait, run or ended lately.

    Example:
        cdc spark jobs shop
        cdc spark jobs shop --json
    """
    config = config_of(find(context, source))
    if config.merge.spark_server is None:
        raise ConfigError(
            "the source file names no Spark server",
            hint="Its jobs start Spark themselves. To use a server, name it in merge.spark_server.",
            source=source,
        )
    found = [_line(job) for job in SparkServer(config.merge.spark_server).jobs()]
    if as_json:
        print_json(found)
        return
    rows = (
        (one.id, one.job, one.source, one.state, f"{one.seconds:.1f}", Text(one.error, style="red")) for one in found
    )
    table(("id", "job", "source", "state", "seconds", "error"), rows)


def _line(job: JobStatus) -> JobLine:
    error = str((job.error or {}).get("message", ""))
    return JobLine(job.id, job.job, job.source, job.state, job.seconds, job.exit_code, error)
