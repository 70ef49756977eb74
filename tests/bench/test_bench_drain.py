"""Runs the benchmark of the drain: ``pytest -m bench``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.bench.processes import ROOT
from tests.bench.report import DRAIN, GO, JAVA, PYTHON, RAW, comparison

ALL = ("W1", "W2", "W3", "W4", "W5")
UNREAD = {"mysql": {PYTHON}, "mariadb": {PYTHON, JAVA}}
"""Peers that do not read the rows of compressed transactions, by the server that wrote them."""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_the_benchmark_measures_all_readers_and_writes_its_file(tmp_path, server):
    """A tiny run of the command compares the drain of each workload with the peers and a raw copy, or gives the reason why not."""
    file = tmp_path / "bench" / "drain.json"
    command = [sys.executable, "-m", "tests.bench.drain", "--scale", "0.002", "--runs", "2"]
    command += ["--server", server, "--output", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    assert document["machine"]["cores"] >= 1
    figures = document["figures"]
    names = {figure["name"]: figure for figure in figures}
    missing = {(entry["workload"], entry["reader"]): entry["why"] for entry in document["not_measured"]}
    for peer in (PYTHON, GO, JAVA):
        beside_peer = {figure["name"] for figure in figures if figure["compared_to"] == peer}
        assert beside_peer == {comparison(name, peer) for name in ALL if (name, peer) not in missing}
        assert all(names[name]["ratio"] > 0 for name in beside_peer)
    unread = {reader for name, reader in missing if name == "W5"}
    assert unread == UNREAD[server], missing
    beside_raw = {figure["name"] for figure in figures if figure["compared_to"] == RAW}
    copied = {name for name in ALL if f"{name} {RAW}: wall" in names}
    assert copied or server == "mariadb", "MySQL's own program is among its packages"
    assert beside_raw == {f"{name} {DRAIN}: wall" for name in copied}
    assert all(names[name]["ratio"] > 0 for name in beside_raw)
    assert all(names[f"{name} {DRAIN}: CPU"]["spread"] for name in ALL)
