"""Runs each reader in its own process, and measures it with the operating system's figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from tests.bench.peers.programs import ReaderMissing
from tests.bench.readers import Job, Measured, cpu_seconds
from tests.harness.servers import SqlServer, mysql_packages

ROOT = Path(__file__).parents[2]
_LONGEST = 1200
"""Timeout of a reader in seconds, for one that waits for an event that never comes."""


class ReaderFailed(Exception):
    """A reader failed, or read other rows than were written."""


def job_of(
    server: SqlServer,
    start: Position,
    stop: Position,
    warm: tuple[Position, Position] | None = None,
    rows: int = 0,
    *,
    tls: bool = False,
) -> Job:
    """Return the job of a reader: a range of a server's binlog, and a small one to warm up with.

    Args:
        server: to read.
        start: of the range.
        stop: of the range.
        warm: start and end of the warm-up; None for no warm-up.
        rows: stop after this many row changes.
        tls: whether the server encrypts.
    """
    return Job(
        flavor=server.flavor,
        host=server.host,
        port=server.port,
        user=server.cdc_user,
        password=server.cdc_password,
        file=start.file,
        start=start.offset,
        stop=stop.offset,
        stop_file=stop.file if stop.file != start.file else "",
        rows=rows,
        warm_file=warm[0].file if warm else start.file,
        warm_stop=warm[1].offset if warm else FIRST_EVENT_OFFSET,
        tls=tls,
    )


def read_in_python(reader: str, job: Job) -> Measured:
    """Run one of ``readers.READERS``.

    Raises:
        ReaderFailed: it failed; the message has its output.
    """
    return _read(reader, [sys.executable, "-m", "tests.bench.readers", reader, job.text()])


def read_with_program(reader: str, program: Sequence[str], job: Job) -> Measured:
    """Run a reader of ``tests/bench/peers``; the job must be in one binlog file.

    Args:
        reader: its name, for messages.
        program: its command.
        job: the range that it reads.

    Raises:
        ReaderFailed: it failed; the message has its output.
    """
    options = {
        "flavor": job.flavor,
        "host": job.host,
        "port": job.port,
        "user": job.user,
        "password": job.password,
        "tls": str(job.tls).lower(),
        "file": job.file,
        "start": job.start,
        "stop": job.stop,
        "warm-file": job.warm_file,
        "warm-stop": job.warm_stop,
    }
    return _read(reader, [*program, *(f"--{name}={value}" for name, value in options.items())])


def _read(reader: str, command: Sequence[str]) -> Measured:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST)
    except subprocess.TimeoutExpired as error:
        raise ReaderFailed(f"{reader} did not end within {_LONGEST} seconds") from error
    if done.returncode != 0:
        raise ReaderFailed(f"{reader} failed: {done.stderr.strip()[-2000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def raw_program(flavor: str) -> list[str]:
    """Return the program that copies a binlog file. MySQL's cannot log in to MariaDB, and MariaDB's is not always installed.

    Raises:
        ReaderMissing: MariaDB's is not on PATH.
    """
    if flavor == "mysql":
        return mysql_packages.command("mysqlbinlog")
    program = shutil.which("mariadb-binlog")
    if program is None:
        raise ReaderMissing("mariadb-binlog is not on PATH")
    return [program]


def copy_raw(program: Sequence[str], job: Job) -> Measured:
    """Copy the binlog file with ``mysqlbinlog --raw``, which decodes nothing.

    Args:
        program: what ``raw_program`` returned.
        job: names the file.

    Raises:
        ReaderFailed: it failed, or copied less.
    """
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        command = [
            *program,
            "--no-defaults",
            "--read-from-remote-server",
            "--raw",
            f"--host={job.host}",
            f"--port={job.port}",
            "--user=root",
            f"--start-position={job.start}",
            f"--result-file={folder}/",
            job.file,
        ]
        began = time.perf_counter()
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(command, stdout=output, stderr=output)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - began
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        copied = sum(path.stat().st_size for path in Path(folder).iterdir())
    if child.returncode != 0 or copied < job.stop:
        raise ReaderFailed(f"mysqlbinlog copied {copied} of {job.stop} bytes: {text[-2000:]}")
    return Measured(None, wall, cpu_seconds(usage), None, written=copied)
