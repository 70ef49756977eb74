"""``cdc verify`` of a table in sync, compared with one checksum query at the source: ``./dev bench verify``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.bench.lake.end_to_end import PASSWORD, source_file
from tests.bench.report import Figure, save, spread
from tests.bench.usage import ROOT, measure
from tests.bench.workloads import DATABASE, WORKLOADS, prepare
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

GOAL = 1.5
"""Time as a multiple of the checksum query's."""
_PIECE = 1_000_000


def main() -> int:
    """Fill the table, merge it into the lake, compare it, print and save."""
    parser = argparse.ArgumentParser(prog="./dev bench verify", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of the table (5000000)")
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    parser.add_argument("--rounds", type=int, default=3, help="scans and comparisons (3)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "verify.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with MySqlServer(settings={"max-binlog-size": "1G"}) if options.server == "mysql" else MariaDbServer() as server:
        prepare(server)
        bulk = WORKLOADS[0]
        server.execute(bulk.tables[0], database=DATABASE)
        for begin in range(0, options.rows, _PIECE):
            bulk.run(server, min(_PIECE, options.rows - begin))
        with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
            cdc = source_file(Path(folder), server, f"{DATABASE}.mixed", start="snapshot")
            env = {PASSWORD: server.cdc_password}
            taken, _ = measure([*cdc, "run", "bench"], env)
            scans, runs, compared = [], [], []
            for _ in range(options.rounds):  # one after the other, so that other work on the machine meets both
                scans.append(_scan(server))
                used, printed = measure([*cdc, "verify", "bench", "--json"], env)
                runs.append(used)
                compared.append(_compared(printed))
        version = f"{server.flavor} {server.version}"
    scan, used = min(scans), min(runs, key=lambda one: one.wall)
    ratio = round(min(compared) / scan, 2)
    name = f"{options.rows:,} rows"
    figures = [
        Figure(f"{name}: the source's own scan for a checksum", round(scan, 2), "s", spread=spread(scans, 2)),
        Figure(
            f"{name}: cdc verify, its comparison",
            round(min(compared), 2),
            "s",
            "the scan",
            ratio,
            GOAL,
            ratio <= GOAL,
            spread(compared, 2),
        ),
        Figure(
            f"{name}: cdc verify, the start of Python counted in",
            used.wall,
            "s",
            "the scan",
            round(used.wall / scan, 2),
            spread=spread([one.wall for one in runs], 2),
        ),
        Figure(f"{name}: cdc verify, its CPU without the server's", used.cpu, "s"),
        Figure(f"{name}: cdc verify, peak memory", used.peak_mib, "MiB"),
        Figure(f"{name}: the first cdc run, snapshot and merge", taken.wall, "s"),
        Figure(f"{name}: the first cdc run, CPU", taken.cpu, "s"),
        Figure(f"{name}: the first cdc run, peak memory of one process", taken.peak_mib, "MiB"),
    ]
    for figure in figures:
        print(f"{figure.name}: {figure.value:,} {figure.unit}" + (f", {figure.ratio} x" if figure.ratio else ""))
    about = {
        "load_before": load,
        "runs": f"{options.rounds} of the scan and of cdc verify in turns, the fastest counts; 1 of cdc run",
        "warm_up": "none; the start of Python is counted where the row says so",
    }
    save(figures, version, about, options.output)
    return 0


def _compared(report: str) -> float:
    """Return the seconds between the start and the end of a comparison, from its JSON: without imports and the opening of the lake."""
    times = json.loads(report[report.index("{") :])
    return (datetime.fromisoformat(times["ended_at"]) - datetime.fromisoformat(times["started_at"])).total_seconds()


def _scan(server: SqlServer) -> float:
    """Return the seconds of one checksum over all columns."""
    listed = "SELECT GROUP_CONCAT(CONCAT('`', column_name, '`')) FROM information_schema.columns"
    [(columns,)] = server.execute(f"{listed} WHERE table_schema = '{DATABASE}' AND table_name = 'mixed'")
    began = time.perf_counter()
    server.execute(f"SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS(',', {columns}))) FROM mixed", database=DATABASE)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
