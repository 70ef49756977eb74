"""Speed of re-selecting rows by their keys, in wall seconds and CPU seconds of this process: ``./dev bench reselect``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.model.position import Point
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import facts_of
from cdc_lib.reselect.result import Reread
from cdc_lib.reselect.rows import Reselector
from cdc_lib.source import Source
from cdc_lib.store.objects.local import LocalStore
from tests.bench.processes import ROOT
from tests.bench.report import Figure, save, spread
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

RUNS = 3
GOAL = 50_000
"""Keys a second of one core."""
_TABLES = {
    "one integer": "id INT PRIMARY KEY, other INT",
    "text and integer": "name VARCHAR(20), id INT, PRIMARY KEY (name, id)",
}
_ROW = "a BIGINT, b VARCHAR(40), c DECIMAL(12,2), d DATETIME(6), e TEXT"


def main() -> int:
    """Fill the tables, look rows up, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench reselect", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of each table; every second row is re-selected")
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "reselect.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    # With GTIDs the low watermark is exact; without them each read first waits some seconds.
    gtids = {"gtid-mode": "ON", "enforce-gtid-consistency": "ON"}
    with MySqlServer(settings=gtids) if options.server == "mysql" else MariaDbServer() as server:
        version = f"{server.flavor} {server.version}"
        figures = [figure for name in _TABLES for figure in _measured(server, name, options.rows)]
    for figure in figures:
        print(f"{figure.name}: {figure.value:,} {figure.unit}" + (f", goal {figure.goal:,}" if figure.goal else ""))
    about = {
        "rows": options.rows,
        "load_before": load,
        "runs": f"{RUNS} of each key, the fastest counts",
        "warm_up": "none; the first run is one of those that are compared",
    }
    save(figures, version, about, options.output)
    return 0


def _measured(server: SqlServer, name: str, rows: int) -> list[Figure]:
    server.execute("DROP DATABASE IF EXISTS bench")
    server.execute("CREATE DATABASE bench")
    server.execute(f"CREATE TABLE t ({_TABLES[name]}, {_ROW})", database="bench")
    key = "id, other" if name == "one integer" else "name, id"
    values = "n, n" if name == "one integer" else "CONCAT('name ', n), n"
    digit = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
    digit += " UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
    numbers = ", ".join(f"{digit} d{i}" for i in range(len(str(rows))))
    number = " + ".join(f"d{i}.d * {10**i}" for i in range(len(str(rows))))
    server.execute(
        f"INSERT INTO t ({key}, a, b, c, d, e) SELECT {values}, n * 3, CONCAT('b', n), n / 7, NOW(6), REPEAT('x', n % 200)"
        f" FROM (SELECT {number} AS n FROM {numbers}) AS s WHERE n < {rows}",
        database="bench",
    )
    ids = np.random.default_rng(1).permutation(rows)[: rows // 2].astype(np.int32)
    keys = pa.table({"id": ids})
    if name != "one integer":
        keys = pa.table({"name": pa.array([f"name {n}" for n in ids]), "id": ids})
    with tempfile.TemporaryDirectory() as folder:
        runs = [_run(server, Path(folder), keys) for _ in range(RUNS)]
    wall, cpu = min(took for took, _ in runs), min(took for _, took in runs)
    speed = round(keys.num_rows / cpu)
    return [
        Figure(
            f"{name}: keys a second on the clock",
            round(keys.num_rows / wall),
            "keys/s",
            spread=spread((keys.num_rows / took for took, _ in runs), 0),
        ),
        Figure(
            f"{name}: keys a second of one core",
            speed,
            "keys/s",
            goal=GOAL,
            met=speed >= GOAL,
            spread=spread((keys.num_rows / took for _, took in runs), 0),
        ),
    ]


def _run(server: SqlServer, folder: Path, keys: pa.Table) -> tuple[float, float]:
    config = SourceConfig(
        source="bench",
        server={"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": "UNUSED"},
        tables={"include": ["bench.*"]},
        store={"url": f"file://{folder}/store"},
        lake={"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/cat.db", "warehouse": f"file://{folder}/lake"},
    )
    credentials = Credentials(server.cdc_user, server.cdc_password)
    identity = facts_of(config.server, credentials).identity
    connection = connect(config.server, credentials)
    schema = InformationSchema(connection).schema("bench", "t")
    connection.close()
    if schema is None:
        raise AssertionError("bench.t")
    reader = Reselector(Source.over(config, LocalStore(folder / "store"), credentials), identity, 1)
    began, used = time.perf_counter(), time.process_time()
    result = reader.read(schema, keys, Point(1, 0, 0))
    took = time.perf_counter() - began, time.process_time() - used
    if not isinstance(result, Reread) or (result.rows, result.missing) != (keys.num_rows, 0):
        raise AssertionError(result)
    return took


if __name__ == "__main__":
    sys.exit(main())
