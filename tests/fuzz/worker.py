"""The process whose copies run the cases: ``python -m tests.fuzz.worker``.

It reads requests from its input, one in a line: target, seed, first case, number of cases, and the file for the case that runs.
It answers each with a line when the cases have ended: the exit status of their process and what they report.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import tempfile
import time
from typing import IO

import numpy as np

from tests.fuzz.targets import TARGETS

SILENCE_SECONDS = 120
"""How long a portion of cases may take: more is a hang."""

COMPILING_SECONDS = 900
"""How long the first portion may take, in which kernels are compiled that no empty portion reaches."""


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # prints of this process and of its copies must not mix with the answers
    faulthandler.enable()
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as report:
            status = _run_in_copy(report, *json.loads(line))
            report.seek(0)
            print(json.dumps([status, report.read()]), file=answers, flush=True)


def _run_in_copy(report: IO[str], name: str, seed: int, first: int, cases: int, case_file: str) -> int:
    """Run the cases in a copy of this process, and return its exit status."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            run(report, name, seed, first, cases, case_file)
            report.flush()
            status = 0
        except BaseException:  # noqa: BLE001 - the copy must end here, and its error be seen
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(report: IO[str], name: str, seed: int, first: int, cases: int, case_file: str) -> None:
    """Run the cases portion by portion; the file at ``case_file`` holds the case that runs."""
    target = TARGETS[name]
    done = np.memmap(case_file, np.int64, "r+", shape=(1,))
    target.run(seed, first, 0 if cases > 1 else cases, done)  # compiles
    began = time.perf_counter()
    for start in range(first, first + cases, target.at_once):
        faulthandler.dump_traceback_later(COMPILING_SECONDS if start == first else SILENCE_SECONDS, exit=True)
        target.run(seed, start, min(target.at_once, first + cases - start), done)
    faulthandler.cancel_dump_traceback_later()
    report.write(f"{name:<10} {cases:>10,} cases {time.perf_counter() - began:>7.1f} s")


if __name__ == "__main__":
    main()
