"""Measures a command with all its child processes, also those that outlive their parents, as Spark's Java does."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Usage:
    """Wall seconds, CPU seconds of all processes, and the memory of the largest process in MiB."""

    wall: float
    cpu: float
    peak_mib: int


class CommandFailed(Exception):
    """A measured command failed."""


def measure(command: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[Usage, str]:
    """Run a command, and return its cost and its output.

    Raises:
        CommandFailed: it failed; the message has the end of its output.
    """
    # A subreaper process adopts orphans, so that the system adds their usage to it.
    around = [sys.executable, "-m", "tests.bench.usage", *command]
    done = subprocess.run(around, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}: {done.stdout[-1000:]} {done.stderr[-3000:]}")
    printed, _, last = done.stdout.rstrip().rpartition("\n")
    return Usage(**json.loads(last)), printed


def main() -> int:
    """Run the command of the command line, wait for all its processes and print their cost."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.perf_counter()
    status = subprocess.run(sys.argv[1:], check=False).returncode
    wall = time.perf_counter() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        "\n"
        + json.dumps(asdict(Usage(round(wall, 3), round(used.ru_utime + used.ru_stime, 3), used.ru_maxrss // 1024)))
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
