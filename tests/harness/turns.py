"""Which tests with ``turns(n)`` run in this checkout: one n-th of them, another one for each commit.

They are many, each proves something of its own, and each costs much: over some commits all of them run.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

VARIABLE = "CDC_TURN"
"""Environment variable: the number to use in place of the commit's."""


def out_of_turn(items: Iterable[pytest.Item], turn: int) -> Iterator[pytest.Item]:
    """Yield the tests whose turn comes with another commit.

    Args:
        items: all tests.
        turn: number of the commit.
    """
    for item in items:
        marker = item.get_closest_marker("turns")
        if marker is not None and (zlib.crc32(item.nodeid.encode()) + turn) % int(marker.args[0]):
            yield item


def turn_of(folder: Path) -> int:
    """Return the number of the commit that is checked out; 0 without one."""
    if given := os.environ.get(VARIABLE):
        return int(given)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0
