"""Runs the benchmark of re-selecting: ``pytest -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.processes import ROOT


def test_the_benchmark_finds_every_key(tmp_path):
    """It fails if a row is missing, and has both speeds for each kind of key."""
    file = tmp_path / "reselect.json"
    small = ["--rows", "2000", "--output", str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.reselect", *small], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(file.read_text())["figures"]) == 4
