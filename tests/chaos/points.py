"""The kill points of a step: each is written to a log, and at the chosen one the process is killed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

KILLED = "KILLED "
"""Prefix of the log's last line if the step was killed."""


class Points:
    """Counts the labelled points that a step passes.

    Args:
        log: file that gets a line for each point.
        label: point at which the process is killed; None for none.
        nth: at which occurrence of the label, from 1.
        group: whether the whole process group is killed; else only this process.
    """

    def __init__(self, log: Path, label: str | None = None, nth: int = 1, *, group: bool = True) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._label = label
        self._left = nth
        self._group = group
        self._lock = threading.Lock()

    def at(self, label: str) -> None:
        """Pass a point."""
        with self._lock:
            if label == self._label:
                self._left -= 1
                if self._left == 0:
                    self._die(label)
            self._note(label)

    def after(self, seconds: float, label: str) -> None:
        """Kill the process after some seconds."""
        timer = threading.Timer(seconds, self._die, (label,))
        timer.daemon = True
        timer.start()

    def _die(self, label: str) -> None:
        self._note(f"{KILLED}{label}")
        if self._group:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def _note(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())


def read(log: Path) -> tuple[list[str], str | None]:
    """Return the labels in a log, and the one at which the process was killed."""
    lines = log.read_text().splitlines() if log.exists() else []
    killed = [line.removeprefix(KILLED) for line in lines if line.startswith(KILLED)]
    return [line for line in lines if not line.startswith(KILLED)], killed[0] if killed else None
