"""A server process that always ends with its starter."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

# The server runs in its own session, under a shell that watches a pipe whose other end only this process holds.
# When this process ends, even by SIGKILL, the pipe closes and the shell stops the server.
# (PR_SET_PDEATHSIG fires too early: when the *thread* that started the server ends.)
SUPERVISOR = """
trap : TERM
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(
  trap - TERM
  read -r _ <&3
  kill -TERM "$server" 2>/dev/null
  sleep "$STOP_SECONDS"
  kill -KILL 0
) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
while :; do
  wait "$server"
  code=$?
  kill -0 "$server" 2>/dev/null || break
done
kill -TERM "$watcher"
exit "$code"
"""


class ServerDidNotStart(Exception):
    """A server ended, or was not ready in time; the message shows the end of its log."""


# Below the range of Linux's local ports: a port that bind(0) returned may be in use by a connection by the
# time the server listens on it.
_PORTS = range(20_000, 32_000)
_reserved: list[IO[bytes]] = []


def free_port() -> int:
    """Return a TCP port of the loopback interface that is free and reserved for this test process.

    A locked file of its name reserves it until this process ends.
    """
    folder = Path(tempfile.gettempdir()) / "lakecdc-ports"
    folder.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        reservation = (folder / str(port)).open("wb")
        try:
            fcntl.flock(reservation, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
            continue
        _reserved.append(reservation)
        return port
    raise ServerDidNotStart(f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def listens(host: str, port: int) -> bool:
    """Return whether something takes connections there."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((host, port)) == 0


class ServerOfTests(ABC):
    """A server that a block starts and stops."""

    @abstractmethod
    def start(self) -> Self:
        """Start it."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, also after a start that failed."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()


class ServerProcess:
    """A server that runs until it is stopped or this process ends.

    Args:
        name: its name in messages.
        command: program and arguments.
        log: file for its standard output and error.
        environment: variables in addition to those of this process.
        stop_seconds: how long it may take to end after SIGTERM before it is killed.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        stop_seconds: int = 20,
    ) -> None:
        self.name = name
        self.log = log
        self.stop_seconds = stop_seconds
        with log.open("ab") as output:
            self._shell: subprocess.Popen[Any] = subprocess.Popen(
                ["/bin/sh", "-c", SUPERVISOR, name, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {}), "STOP_SECONDS": str(stop_seconds)},
                start_new_session=True,
            )

    @property
    def session(self) -> int:
        """Id of the session of its processes."""
        return self._shell.pid

    @property
    def running(self) -> bool:
        """Return whether it has not ended yet."""
        return self._shell.poll() is None

    def wait_until_ready(self, ready: Callable[[], bool], seconds: float = 300) -> None:
        """Poll ``ready`` until it returns True.

        Raises:
            ServerDidNotStart: the process ended or the time is over; the process is stopped then.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise ServerDidNotStart(f"{self.name} ended with {self._shell.returncode}: {self.log_tail()}")
            if time.monotonic() > deadline:
                self.stop()
                raise ServerDidNotStart(f"{self.name} was not ready after {seconds:.0f} s: {self.log_tail()}")
            time.sleep(0.05)

    def log_tail(self, lines: int = 30) -> str:
        """Return the end of the log, under its name."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([f"{self.log}", *text.splitlines()[-lines:]])

    def stop(self) -> None:
        """Stop it and its child processes with SIGTERM; a second call does nothing."""
        if self._shell.stdin and not self._shell.stdin.closed:
            self._shell.stdin.close()
        try:
            self._shell.wait(self.stop_seconds + 5)
        finally:
            self._kill_group()

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self._kill_group()
        if self._shell.stdin and not self._shell.stdin.closed:
            self._shell.stdin.close()

    def _kill_group(self) -> None:
        """Kill what remains of the session, and wait until its files and ports are free."""
        deadline = time.monotonic() + 10
        while _runs_in_group(self._shell.pid) and time.monotonic() < deadline:
            with suppress(ProcessLookupError):
                os.killpg(self._shell.pid, signal.SIGKILL)
            time.sleep(0.02)
        self._shell.wait(10)


def _runs_in_group(group: int) -> bool:
    """Return whether a process of the group runs. A zombie does not count: it holds nothing."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _parent, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state != "Z":
                return True
    return False
