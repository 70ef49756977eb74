"""The benchmark of places and cursors runs: ``pytest -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.processes import ROOT


def test_the_benchmark_counts_what_each_search_reads(tmp_path):
    """A position needs the head of one file, and GTIDs some. By time no file is left out that is younger than a long statement."""
    file = tmp_path / "positions.json"
    small = ["--files", "8", "--rows", "200", "--acks", "5", "--output", str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.positions", *small], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = {figure["name"]: figure["value"] for figure in json.loads(file.read_text())["figures"]}
    assert found["position, end of the large file: file heads read"] == 1
    assert found["time, newest file: file heads read"] == 1
    everything = found["time, newest file: bytes scanned"]
    assert everything >= found["time, after the large file: bytes scanned"] >= found["the large file"] > 0
    assert 1 < found["GTIDs, half of the files: file heads read"] < 8
    homes = {name for name in found if name.startswith("ack, ") and name.endswith(": p99")}
    assert len(homes) == 4
