"""Writes a job's output in whole lines: tables run in parallel, and Python writes a line and its newline separately."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TextIO

_LOCK = threading.Lock()


def say(line: str, stream: TextIO | None = None) -> None:
    """Write one line in one piece."""
    out = sys.stdout if stream is None else stream
    with _LOCK:
        out.write(line.replace("\n", "\n  ") + "\n")
        out.flush()


class Lines(logging.Handler):
    """Writes the library's log records as whole lines to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        say(self.format(record), sys.stderr)


def log_to_stderr() -> None:
    """Show the library's progress and warnings."""
    log = logging.getLogger("cdc_lib")
    if not any(isinstance(handler, Lines) for handler in log.handlers):
        log.addHandler(Lines())
    log.setLevel(logging.INFO)
