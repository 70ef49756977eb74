"""A process that has all modules imported and forks one process for each step, so that steps start fast.

``python -m tests.chaos.fork_server`` reads lines of jobs, each line a list to be run at the same time, and answers each
with a line of exit statuses.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.chaos import points
from tests.chaos.job import Job, Outcome

ROOT = Path(__file__).parents[2]


class ForkServer:
    """Runs each step in its own process."""

    def __enter__(self) -> Self:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, *jobs: Job) -> list[Outcome]:
        """Run jobs at the same time."""
        self.begin(*jobs)
        return self.finish(*jobs)

    def begin(self, *jobs: Job) -> None:
        """Start jobs; one after a job that stops begins when that has stopped, or ended."""
        assert self._process.stdin is not None
        for job in jobs:
            Path(job.folder).mkdir(parents=True)
        self._process.stdin.write(json.dumps([job.to_json() for job in jobs]) + "\n")
        self._process.stdin.flush()

    def have_ended(self) -> bool:
        """Whether all jobs that were started have ended."""
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def finish(self, *jobs: Job) -> list[Outcome]:
        """Return how jobs ended that were started."""
        assert self._process.stdout is not None
        statuses = json.loads(self._process.stdout.readline())
        return [_outcome(job, status) for job, status in zip(jobs, statuses, strict=True)]


def _outcome(job: Job, status: int | None) -> Outcome:
    passed, killed_at = points.read(job.log)
    if status is not None and status >= 0:
        killed_at = None  # it ended, well or with an error, before the signal arrived
    error = json.loads(job.result.read_text()) if job.result.exists() else {}
    message = error.get("message") or job.output.read_text(errors="replace")[-3000:]
    return Outcome(status, tuple(passed), killed_at, error.get("error", ""), error.get("retryable", False), message)


def main() -> None:
    """Serve until the input ends."""
    from cdc_lib.compile_kernels import warm

    answers = os.dup(1)
    os.dup2(2, 1)  # prints of this process and of steps must not mix with the answers
    from tests.chaos.step import run

    warm()
    leaders: list[int] = []
    for line in sys.stdin:
        jobs = [Job.from_json(text) for text in json.loads(line)]
        pids = [_fork(job, run) for job in jobs]
        statuses = [_wait(pid, job.timeout) for pid, job in zip(pids, jobs, strict=True)]
        os.write(answers, (json.dumps(statuses) + "\n").encode())
        # The id of a group that ended may be used again.
        leaders = [pid for pid in (*leaders, *pids) if _leads(pid)]
    for pid in leaders:  # a Spark whose Python was killed alone
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _leads(pid: int) -> bool:
    """Return whether a process of a step's group still runs."""
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _fork(job: Job, run) -> int:
    pid = os.fork()
    if pid:
        if job.stops:
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return pid
    os.setsid()
    output = os.open(job.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = run(job)
    sys.stdout.flush()
    os._exit(status)


def _wait(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    main()
