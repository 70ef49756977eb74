"""Runs the benchmark of positions and cursors: ``pytest -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.processes import ROOT


def test_the_benchmark_counts_what_each_search_reads(tmp_path):
    """A position needs one file head, GTIDs some. A search by time reads all files younger than the longest statement."""
    file = tmp_path / "positions.json"
    small = ["--files", "8", "--rows", "200", "--acks", "5", "--output", str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.positions", *small], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    values = {figure["name"]: figure["value"] for figure in json.loads(file.read_text())["figures"]}
    assert values["position, end of the large file: file heads read"] == 1
    assert values["time, newest file: file heads read"] == 1
    everything = values["time, newest file: bytes scanned"]
    assert everything >= values["time, after the large file: bytes scanned"] >= values["the large file"] > 0
    assert 1 < values["GTIDs, half of the files: file heads read"] < 8
    homes = {name for name in values if name.startswith("ack, ") and name.endswith(": p99")}
    assert len(homes) == 4
