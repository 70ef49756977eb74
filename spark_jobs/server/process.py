"""The process of one job. It is forked from a process that has imported all jobs, so that it starts in some milliseconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import get_args

from cdc_lib.config.credentials import HANDED, HANDED_STORE
from cdc_lib.jobs.request import JobName

JOBS: tuple[JobName, ...] = get_args(JobName)


@dataclass(frozen=True, slots=True)
class JobStart:
    """What the process of a job gets.

    Args:
        job: the module of ``spark_jobs``.
        arguments: of its ``main``.
        folder: where it works.
        output: file of its output.
        variables: its environment variables, beside those of the server.
        hidden: variables of the server that it does not get.
    """

    job: JobName
    arguments: tuple[str, ...]
    folder: Path
    output: Path
    variables: Mapping[str, str] = field(repr=False)
    hidden: AbstractSet[str] = frozenset()


def job_processes() -> ForkServerContext:
    """Return the starter of job processes; call it before the server has threads or secrets of sources."""
    context = multiprocessing.get_context("forkserver")
    own = ("spark_jobs.server.process", "spark_jobs.server.prepared")
    context.set_forkserver_preload([*own, *(f"spark_jobs.{job}" for job in JOBS)])
    return context


def run_job(start: JobStart) -> None:
    """Run a job to its end, in its process; the process ends when the server does."""
    threading.Thread(target=_end_with_server, name="server", daemon=True).start()
    os.chdir(start.folder)
    output = os.open(start.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name in (*HANDED, *HANDED_STORE, *start.hidden):
        os.environ.pop(name, None)
    os.environ.update(start.variables)
    sys.exit(import_module(f"spark_jobs.{start.job}").main(start.arguments))


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        wait([server.sentinel])
        os._exit(1)
