"""Every benchmark runs at its smallest size, and prints its figures and the figures that they are compared with.

No test asserts a duration. Benchmarks that need Spark, or more than some seconds, are ``slow``.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bench.lake.__main__ import PARTS
from tests.bench.newcomer import ALONE

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "tests" / "bench"
NOT_BENCHMARKS = {
    "page",
    "summary",
    "readers",
    "usage",
    "lake.once",
    "lake.plain",
    "lake.start",
    "reading.duckdb_process",
}
"""Modules that are not benchmarks: programs that benchmarks start, and the writer of the page."""


@dataclass(frozen=True, slots=True)
class Smoke:
    """A benchmark at its smallest size.

    Args:
        name: as ``./dev bench`` takes it.
        arguments: that make it small.
        printed: texts in its output, with the names of the compared figures.
        peers: values of ``compared_to`` in its file.
        file: its file in the output folder; empty if it takes the path of the file.
        needs: program that it starts and that a machine may not have.
    """

    name: str
    arguments: tuple[str, ...]
    printed: tuple[str, ...]
    peers: frozenset[str] = frozenset()
    file: str = ""
    needs: str = ""


QUICK = [
    Smoke(
        "drain",
        ("--scale", "0.002", "--runs", "1", "--workloads", "W1", "--readers", "mysqlbinlog", "mysql-replication"),
        ("this drain", "mysql-replication", "mysqlbinlog --raw", "encode"),
        frozenset({"mysql-replication", "mysqlbinlog --raw"}),
    ),
    Smoke("parallel", ("--rows", "200"), ("processes", "speed x one"), frozenset({"one process"})),
    Smoke("positions", ("--files", "8", "--rows", "200", "--acks", "5"), ("mysqlbinlog --raw", "S3 server"), frozenset({"mysqlbinlog --raw"})),
    Smoke("tables", ("--sizes", "20", "40"), ("plan of a merge", "ack of nothing new")),
    Smoke("tables", ("--server", "mysql", "--sizes", "3", "6"), ("snapshots, drain", "6 tables, status", "ratio of CPU")),
]  # fmt: skip
SLOW = [
    Smoke(
        "airflow",
        ("--runs", "1"),
        ("nothing to do, with the scheduler's imports", "changes in 5 tables, without the scheduler's imports"),
        frozenset({"without the scheduler's imports"}),
    ),
    Smoke("parsing", ("--sources", "2", "--runs", "1"), ("14 DAGs", "JSON schema", "EmptyOperator"), frozenset({"14 empty DAGs"})),
    Smoke("freshness", ("--tables", "2", "--rate", "20", "--minutes", "0.5"), ("95 % within", "last third", "a run of the DAG")),
    Smoke("xcom", ("--tables", "3"), ("first run, 3 tables: XCom", "mapped drains", "nothing to do, 3 tables: wall")),
    Smoke("ui", ("--sources", "3", "--tables", "20", "--runs", "1"), ("list of 4 sources", "20 tables: /tables", "a store that never answers: /")),
    Smoke("ddl", ("--tables", "16"), ("FULL", "MINIMAL", "readings"), frozenset({"8 tables"})),
    Smoke("memory", ("--mib", "40"), ("one transaction of 40 MiB", "8 values of 64 MiB")),
    Smoke("reselect", ("--rows", "500"), ("one integer", "text and integer", "keys/s")),
    Smoke("tables", ("--server", "mariadb", "--sizes", "3", "--merges"), ("changes in 20, merge", "3 tables, lake tables")),
    Smoke("tunnel", ("--scale", "0.001", "--kind", "asyncssh"), ("drained directly", "through an SSH server", "through a SOCKS proxy"), frozenset({"directly"})),
    Smoke(
        "snapshot",
        ("--rows", "500"),
        ("the client with --quick", "two processes", "two ranges by two"),
        frozenset({"the client", "one process"}),
    ),
    Smoke("verify", ("--rows", "500", "--rounds", "1"), ("cdc verify", "own scan"), frozenset({"the scan"})),
    Smoke("newcomer", ("--parts", ALONE), ("debootstrap", "pip install", "cdc verify"), needs="debootstrap"),
    Smoke("growth", ("--runs", "2"), ("| 1 to 1 |", "metadata", "snapshots")),
    Smoke(
        "read",
        ("--rows", "20000", "--merges", "2", "--changes", "100", "--windows", "20"),
        ("a get, p50", "such windows wait", "10,000 rows in key order, MySQL", "most requests", "the versions of a row, p99"),
        frozenset({"cdc_lib.read"}),
    ),
    Smoke(
        "lake",
        ("merges", "--rows", "2000", "4000", "--changes", "100"),
        ("uniform keys, ours: wall", "recent keys, merge-into: wall", "recent keys, rewrite: wall", "recent keys, warm, ours: CPU", "uniform keys, ours with 1,000 changes: CPU"),
        frozenset({"merge-into"}),
        "lake-merges.json",
    ),
    Smoke("lake", ("loads", "--rows", "3000"), ("first rows, load: CPU", "first rows, insert: peak memory"), frozenset({"insert"}), "lake-loads.json"),
    Smoke("lake", ("reads", "--rows", "10000", "--windows", "2"), ("as a multiple of compacted", "a get of one key opens"), file="lake-reads.json"),
    Smoke(
        "lake",
        ("many", "--tables", "2"),
        ("2 tables with 50 changes each: wall", "on a warm Spark server: wall", "a MERGE INTO for each table: CPU"),
        frozenset({"a MERGE INTO for each table"}),
        "lake-many.json",
    ),
    Smoke(
        "lake",
        ("start", "--tables", "1", "--runs", "1"),
        ("1 tables with 50 changes each without the archive of classes: CPU",),
        frozenset({"with all"}),
        "lake-start.json",
    ),
    Smoke(
        "lake",
        ("server", "--tables", "2", "--merges", "3"),
        ("2 tables with 50 changes each, on a Spark server: wall", "Java's process, after 3 merges", "new tables: CPU", "a MERGE INTO for each table: wall"),
        frozenset({"a Java process of its own", "new tables", "a MERGE INTO for each table"}),
        "lake-server.json",
    ),
    Smoke(
        "lake",
        ("sources", "--sources", "2", "--tables", "2", "--rounds", "1"),
        ("2 sources with 2 tables of 50 changes each", "round 1 of 1: ", "after 2 rounds", "peak memory of Java"),
        file="lake-sources.json",
    ),
    Smoke(
        "lake",
        ("executors", "--rows", "2000", "--changes", "100"),
        ("2,000 rows, 1 executor on", "4 executors on", "tasks", "shuffled"),
        frozenset({"one executor"}),
        "lake-executors.json",
    ),
    Smoke(
        "lake",
        ("end-to-end", "--scale", "0.001"),
        ("W1 from the binlog to the lake: CPU", "W2 from the binlog to the lake: CPU"),
        file="lake-end-to-end.json",
    ),
]  # fmt: skip


def run(smoke: Smoke, folder: Path) -> tuple[str, dict[str, object]]:
    """Run the benchmark and return its output and its saved document."""
    output = folder / (smoke.file or f"{smoke.name}.json")
    command = [sys.executable, "-m", f"tests.bench.{smoke.name}", *smoke.arguments]
    command += ["--output", str(output.parent if smoke.file else output)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout, json.loads(output.read_text())


def check(smoke: Smoke, folder: Path) -> None:
    """Run the benchmark, and check its output and its saved document."""
    printed, document = run(smoke, folder)
    assert [text for text in smoke.printed if text not in printed] == []
    begins = f"./dev bench {smoke.name} {' '.join(smoke.arguments)}"
    assert str(document["command"]).startswith(begins)
    assert [name for name in ("measured_at", "machine", "load_before", "runs", "warm_up") if name not in document] == []
    if "figures" not in document:
        assert document["lines"]
        return
    figures = document["figures"]
    assert figures
    assert all(isinstance(figure["value"], (int, float)) and figure["value"] >= 0 for figure in figures)
    assert {figure["compared_to"] for figure in figures} - {None} == smoke.peers
    assert all(figure["met"] is not None for figure in figures if figure["goal"] is not None)


@pytest.mark.parametrize("smoke", QUICK, ids=lambda smoke: "-".join([smoke.name, *smoke.arguments[:1]]))
def test_a_benchmark_runs_and_prints_its_figures(smoke, tmp_path):
    check(smoke, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("smoke", SLOW, ids=lambda smoke: "-".join([smoke.name, *smoke.arguments[:1]]))
def test_a_longer_benchmark_runs_and_prints_its_figures(smoke, tmp_path):
    if smoke.needs and shutil.which(smoke.needs) is None:
        pytest.skip(f"no {smoke.needs} on PATH")
    check(smoke, tmp_path)


@pytest.mark.turns(1)
def test_every_benchmark_has_a_smoke_run():
    """Fails for a new benchmark that no test runs."""
    programs = set()
    for path in BENCH.rglob("*.py"):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body):
            name = ".".join(path.relative_to(BENCH).with_suffix("").parts)
            programs.add(name.removesuffix(".__main__"))
    assert programs - NOT_BENCHMARKS == {smoke.name for smoke in (*QUICK, *SLOW)}


@pytest.mark.turns(1)
def test_every_part_of_the_lake_benchmark_has_a_smoke_run():
    assert {smoke.arguments[0] for smoke in SLOW if smoke.name == "lake"} == set(PARTS)
