"""Which tests run in this checkout: of those that start servers, and of laws, one n-th, another one for each commit.

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


BY_FOLDER = {
    "tests/integration/spark": 8,
    "tests/integration/airflow": 4,
    "tests/integration": 3,
    "tests/e2e": 3,
    "tests/property": 2,
}
"""Of the tests of a folder that have no marker ``turns``, one in so many runs with each commit: of the first folder that fits."""

BY_MODULE = "tests/integration/airflow"
"""Folder whose modules run as a whole: each starts DAGs of its own, which costs more than its tests."""


def out_of_turn(items: Iterable[pytest.Item], turn: int) -> Iterator[pytest.Item]:
    """Yield the tests whose turn comes with another commit.

    Args:
        items: all tests.
        turn: number of the commit.
    """
    for item in items:
        marker = item.get_closest_marker("turns")
        turns = int(marker.args[0]) if marker is not None else _of_folder(item.nodeid)
        name = item.nodeid.partition("::")[0] if item.nodeid.startswith(BY_MODULE) else item.nodeid
        if (zlib.crc32(name.encode()) + turn) % turns:
            yield item


def _of_folder(test: str) -> int:
    return next((turns for folder, turns in BY_FOLDER.items() if test.startswith(f"{folder}/")), 1)


def turn_of(folder: Path) -> int:
    """Return the number of the commit that is checked out; 0 without one."""
    if given := os.environ.get(VARIABLE):
        return int(given)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=False)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0
