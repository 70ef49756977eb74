"""A process that has the decoder imported and is copied for each target: imports take longer than a short run of cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]


class ForkServer:
    """Runs the cases of one target in a process of their own, which may crash or hang.

    Args:
        environment: variables in addition to those of this process.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker"],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, name: str, seed: int, first: int, cases: int, case_file: str) -> tuple[int, str]:
        """Run cases of a target, and return the exit status of their process, negative if a signal ended it, and what it printed.

        If the fork server itself has ended, the exit status is that of the fork server.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps([name, seed, first, cases, case_file]) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            return self.process.wait() or 1, ""
        status, text = json.loads(answer)
        return status, text
