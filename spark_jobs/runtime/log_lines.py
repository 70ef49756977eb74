"""What a job says, in whole lines: several tables are worked on at once, and Python writes a line and its end by themselves."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TextIO

_ONE = threading.Lock()


def say(line: str, stream: TextIO | None = None) -> None:
    """Write one line at once."""
    out = sys.stdout if stream is None else stream
    with _ONE:
        out.write(line.replace("\n", "\n  ") + "\n")
        out.flush()


class Lines(logging.Handler):
    """Writes what the library logs as whole lines on the error stream."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        say(self.format(record), sys.stderr)


def log_to_stderr() -> None:
    """Let the library's progress and warnings be seen."""
    log = logging.getLogger("cdc_lib")
    if not any(isinstance(handler, Lines) for handler in log.handlers):
        log.addHandler(Lines())
    log.setLevel(logging.INFO)
