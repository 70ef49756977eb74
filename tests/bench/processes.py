"""Runs each reader in a process of its own and takes what the operating system says it used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from tests.bench.readers import Job, Measured, cpu_seconds
from tests.harness.servers import SqlServer, mysql_packages

ROOT = Path(__file__).parents[2]


class ReaderFailed(Exception):
    """A reader ended badly, or read something else than was written."""


def job_of(
    server: SqlServer, start: Position, stop: Position, warm: tuple[Position, Position] | None = None, rows: int = 0
) -> Job:
    """Return what a reader is to read: a stretch of a server's binlog, after a small one to warm up with.

    Args:
        server: to read.
        start: of the stretch.
        stop: of the stretch.
        warm: both ends of the small one; nothing is read without it.
        rows: stop after this many row changes.
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
    )


def read_in_python(reader: str, job: Job) -> Measured:
    """Run one of ``readers.READERS``.

    Raises:
        ReaderFailed: it did not end well; the message holds what it said.
    """
    command = [sys.executable, "-m", "tests.bench.readers", reader, job.text()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise ReaderFailed(f"{reader} failed: {done.stderr.strip()[-2000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def copy_raw(job: Job) -> Measured | None:
    """Copy the binlog file with ``mysqlbinlog --raw``, which decodes nothing. None without the program.

    MySQL's program cannot log in to MariaDB, and MariaDB's is not always there.

    Raises:
        ReaderFailed: it did not end well, or copied less.
    """
    program = mysql_packages.command("mysqlbinlog") if job.flavor == "mysql" else [shutil.which("mariadb-binlog")]
    if program == [None]:
        return None
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
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(command, stdout=said, stderr=said)
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - began
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
        copied = sum(path.stat().st_size for path in Path(folder).iterdir())
    if child.returncode != 0 or copied < job.stop:
        raise ReaderFailed(f"mysqlbinlog copied {copied} of {job.stop} bytes: {text[-2000:]}")
    return Measured(None, wall, cpu_seconds(usage), None, written=copied)
