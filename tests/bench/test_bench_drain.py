"""The benchmark itself runs: ``pytest -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.bench.processes import ROOT


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_the_benchmark_measures_all_readers_and_writes_its_file(tmp_path, server):
    """A tiny run of the command says of each workload how the drain stands beside mysql-replication."""
    file = tmp_path / "bench" / "drain.json"
    command = [sys.executable, "-m", "tests.bench.drain", "--scale", "0.002", "--server", server, "--output", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    assert document["machine"]["cores"] >= 1
    compared = {figure["name"]: figure for figure in document["figures"] if figure["goal"]}
    assert set(compared) == {f"{name} this drain: rows per CPU second" for name in ("W1", "W2", "W3")}
    assert all(figure["ratio"] > 0 and figure["compared_to"] == "mysql-replication" for figure in compared.values())
