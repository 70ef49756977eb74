"""``cdc backfill`` and ``cdc run``, each in its own process at the same time, while the source changes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog import Catalog

from demo.shop.compare import compare_database, open_lake
from demo.shop.workload import Workload
from tests.harness.servers import SqlServer
from tests.harness.shop.seeded import seeded_shop, source_settings

ROWS = 600
ROUNDS = 1
KEYS = {"orders": ("id",), "order_items": ("order_id", "line_no"), "customers": ("id",)}
"""The tables, and their primary keys."""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def shop(mariadb_server: SqlServer) -> Iterator[str]:
    """Name of a new, seeded shop."""
    with seeded_shop(mariadb_server, ROWS) as name:
        yield name


@pytest.fixture
def start(mariadb_server: SqlServer, shop: str, tmp_path: Path) -> Iterator[Start]:
    """Start a command in its own process group, with its source file; groups that are left are killed at the end."""
    settings = source_settings(mariadb_server, [f"{shop}.{name}" for name in KEYS], tmp_path)
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "shop.yaml").write_text(yaml.safe_dump(settings))
    environment = {**os.environ, "CDC_PASSWORD": mariadb_server.cdc_password, "CDC_SOURCES": str(sources)}

    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "cdc_lib.cli", *arguments]
        out = subprocess.PIPE
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True, process_group=0
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def written(mariadb_server: SqlServer, shop: str) -> Iterator[Callable[[], int]]:
    """Write to the shop until the returned function is called, which returns the number of transactions."""
    stop, done = threading.Event(), Counter[str]()

    def write() -> None:
        with mariadb_server.connect() as connection:
            workload = Workload(connection, shop, alters={})
            while not stop.wait(0.02):
                workload.step()
                done["transactions"] += 1

    thread = threading.Thread(target=write)
    thread.start()

    def stopped() -> int:
        stop.set()
        thread.join()
        return done["transactions"]

    yield stopped
    stopped()


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a command, which must succeed, and return its output."""
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    return output


def key_counts(catalog: Catalog, shop: str, table: str) -> Counter[tuple[object, ...]]:
    """Return how many rows of the lake each key has."""
    key = KEYS[table]
    columns = catalog.load_table((shop, table)).scan(selected_fields=key).to_arrow()
    return Counter(zip(*(columns[name].to_pylist() for name in key), strict=True))


def test_a_backfill_beside_runs_neither_loses_nor_duplicates_a_key(
    mariadb_server: SqlServer, shop: str, start: Start, written: Callable[[], int], tmp_path: Path
) -> None:
    ended(start("run", "shop"))
    for _ in range(ROUNDS):
        backfill, run = start("backfill", "shop"), start("run", "shop")
        outputs = ended(backfill), ended(run)
        assert all(re.search(r"\d changes? into ", output) for output in outputs), outputs
    assert written() > 100
    ended(start("run", "shop"))

    catalog = open_lake(f"jdbc:sqlite:{tmp_path}/catalog.db", f"file://{tmp_path}/lake")
    for table, key in KEYS.items():
        expected = mariadb_server.execute(f"SELECT {', '.join(key)} FROM {table}", database=shop)
        assert key_counts(catalog, shop, table) == Counter(tuple(row) for row in expected)
    options = {"host": mariadb_server.host, "port": mariadb_server.port, "user": "root", "password": ""}
    compared = compare_database(options, shop, catalog, tables=tuple(KEYS))
    assert [one for one in compared if one.differences] == []
    assert sum(one.source_rows for one in compared) > ROWS / 2
    status = start("status", "shop", "--json").communicate(timeout=300)[0]
    assert (json.loads(status)[0]["stopped"], json.loads(status)[0]["missing"]) == ([], [])
