"""A job in a process group of its own that cannot outlive the task which started it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE = 20
"""Seconds between asking a job to end and killing it."""

# A shell watches a pipe whose other end only the task holds: however the task ends, SIGKILL included, the pipe closes
# and the job is asked to stop. Airflow's own on_kill is not called when a worker is killed.
_SUPERVISOR = """
exec 3<&0
"$@" 3<&- </dev/null &
job=$!
(
  trap '' TERM
  read -r _ <&3
  kill -TERM 0
  sleep "$CDC_PATIENCE"
  kill -KILL 0
) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
trap : TERM
# Once at least: a job that ended before the shell came here has a status too.
while :; do
  wait "$job"
  code=$?
  kill -0 "$job" 2>/dev/null || break
done
kill -KILL "$watcher"
exit "$code"
"""


class Job:
    """One command, run to its end.

    Args:
        command: program and arguments.
        environment: all variables of the job.
        folder: where it works.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.command = list(command)
        self.environment = {**environment, "CDC_PATIENCE": str(PATIENCE)}
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, say: Callable[[str], None]) -> int:
        """Run it, hand each line of its output over as it comes, and return its exit status.

        A job that a signal ended has 128 and the signal's number as its status. Whatever it started has ended when this
        returns or raises.
        """
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SUPERVISOR, self.command[0], *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self.environment,
            cwd=self.folder,
            start_new_session=True,
        )
        try:
            if self._process.stdout is not None:
                for line in self._process.stdout:
                    say(line.rstrip())
            return self._process.wait()
        finally:
            self.stop()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def stop(self) -> None:
        """Ask it to end, wait a little, then kill the whole group; a second call does nothing."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        # Bounded: this may run in a signal handler that has interrupted the very same wait.
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        with suppress(ProcessLookupError):  # all of it has ended
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
