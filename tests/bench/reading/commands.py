"""Commands that read the lake, as a person types them: each in a new process, with the start of Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cdc_lib.config import SourceConfig
from tests.bench.processes import ROOT
from tests.bench.reading.measures import figure
from tests.bench.report import Figure

CDC = Path(sys.executable).with_name("cdc")
GOAL = 1000
"""Most milliseconds of an answer."""

RUNS = 7


def commands(folder: Path, config: SourceConfig, table: str, key: int, name: str) -> list[Figure]:
    """Time commands that read a table.

    Args:
        folder: for the source file.
        config: of the source.
        table: ``database.table``.
        key: of a row.
        name: of the table's state, for people.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{config.source}.yaml").write_text(config.model_dump_json(exclude_unset=True, exclude={"source"}))
    asked = {
        "cdc get": ("get", config.source, table, str(key)),
        "cdc scan of 10 rows": ("scan", config.source, table, "--key-from", str(key), "--limit", "10"),
        "cdc lake schema": ("lake", "schema", config.source, table),
    }
    return [figure(f"{name}: {what}, a new process, p50", _times(folder, one), GOAL) for what, one in asked.items()]


def _times(folder: Path, arguments: Sequence[str]) -> list[float]:
    took = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(
            [str(CDC), *arguments],
            cwd=ROOT,
            env=os.environ | {"CDC_SOURCES": str(folder)},
            check=True,
            capture_output=True,
        )
        took.append((time.perf_counter() - began) * 1000)
    return took
