"""Runs of many sources that would all begin in one minute, spread over the minutes of their schedule."""

from __future__ import annotations

import re
from zlib import crc32

_EVERY = re.compile(r"\*/(\d+)\Z")


def spread(expression: str | None, source: str) -> str | None:
    """Return the cron expression of a source, moved by some minutes that its name decides.

    Only ``*/n`` in the field of the minutes is moved: it asks for a frequency. Any other field asks for times.

    Args:
        expression: such as ``*/5 * * * *``; None for runs by hand only.
        source: name of the source.
    """
    minutes, _, rest = (expression or "").partition(" ")
    every = _EVERY.match(minutes)
    if every is None:
        return expression
    step = int(every[1])
    offset = crc32(source.encode()) % step
    return f"{offset}-59/{step} {rest}" if offset else expression
