"""Pauses between the attempts of one request."""

from __future__ import annotations

import random
import time

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
"""Seconds between two attempts. Google lets an object be written about once a second and refuses faster writers."""


class Patience:
    """The time that the attempts of one request may take, counted from now.

    Args:
        seconds: after which there is no further attempt.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE

    def is_left(self) -> bool:
        """Sleep before a further attempt, longer each time; return False at once if the time is over."""
        if time.monotonic() + self._pause > self._end:
            return False
        time.sleep(self._pause * random.uniform(0.5, 1))  # noqa: S311 - spreads writers; no secret
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True
