"""Benchmarks of the Spark side: ``./dev bench lake [merges loads reads many start server sources executors end-to-end]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from tests.bench.lake.end_to_end import end_to_end
from tests.bench.lake.executors import ROWS, merges_by_executors
from tests.bench.lake.many import MANY, many_tables, many_tables_warm
from tests.bench.lake.many import TIMED as TIMED_OF_MANY
from tests.bench.lake.many import WARM_UP as WARM_UP_OF_MANY
from tests.bench.lake.merges import CHANGES, first_loads, merges
from tests.bench.lake.reads import SCANS, reads
from tests.bench.lake.server import MERGES, SMALL, TIMED, WARM_UP, server_merges
from tests.bench.lake.sources import ROUNDS, SOURCES, merges_of_sources
from tests.bench.lake.start import starts
from tests.bench.report import Figure, save
from tests.bench.usage import ROOT
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

PARTS = ("merges", "loads", "reads", "many", "start", "server", "sources", "executors", "end-to-end")
_METHODS = {
    "merges": {
        "runs": "1 each way in a Java process of its own; 3 of each warm one, in turns, their median counts",
        "warm_up": "Spark is started, and not counted; its code is warm only where the row says so, after one merge each way",
    },
    "loads": {
        "runs": "1 each way in a Java process of its own",
        "warm_up": "Spark is started, and not counted; its code is not warm",
    },
    "reads": {"runs": f"{SCANS} readings, the fastest counts; 1 of all others", "warm_up": "none beside the readings"},
    "many": {
        "runs": f"1 in a Java process of its own, {TIMED_OF_MANY} on the server in turn with the statements",
        "warm_up": f"none; Spark's start is counted. The first merge makes the tables. {WARM_UP_OF_MANY + 1} on the server, and 1 of the statements",
    },
    "start": {
        "runs": "as many of each way as --runs says, the ways in turn",
        "warm_up": "a merge that makes the tables",
    },
    "server": {
        "runs": f"3 in a Java process of their own; {TIMED} on the server; the memory of its Java after as many as the rows say",
        "warm_up": f"{WARM_UP} merges on the server",
    },
    "sources": {"runs": "as many rounds as --rounds says", "warm_up": "the round that makes the tables"},
    "executors": {"runs": "1 with each number", "warm_up": "Spark is started, and not counted; its code is not warm"},
    "end-to-end": {"runs": "1 of each workload", "warm_up": "none; the start of Python and Spark is counted"},
}


def main() -> int:
    """Run the chosen parts, print each figure as it comes, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench lake", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all without")
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000], help="of the large tables")
    parser.add_argument("--changes", type=int, default=CHANGES, help="of one merge (100000)")
    parser.add_argument(
        "--tables", type=int, help=f"small ones ({MANY}; {SMALL} where merges are done again and again)"
    )
    parser.add_argument("--windows", type=int, default=100, help="merged between two compactions (100)")
    parser.add_argument("--runs", type=int, default=3, help="merges of each way that starts Spark (3)")
    parser.add_argument("--merges", type=int, default=MERGES, help=f"on a Spark server ({MERGES})")
    parser.add_argument("--minutes", type=float, help="the most for the merges on a Spark server; no limit without")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of merges of all sources ({ROUNDS})")
    parser.add_argument("--sources", type=int, default=SOURCES, help=f"that share a Spark server ({SOURCES})")
    parser.add_argument("--scale", type=float, default=1.0, help="of the workloads from the binlog to the lake")
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mariadb")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench", help="the folder")
    options = parser.parse_args()
    for part in options.parts or PARTS:
        load = round(os.getloadavg()[0], 2)
        server = "none"
        with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
            match part:
                case "merges":
                    results = _printed(merges(Path(folder), options.rows, options.changes))
                case "loads":
                    results = _printed(first_loads(Path(folder), options.rows[0]))
                case "reads":
                    results = _printed(reads(Path(folder), options.rows[0], options.windows))
                case "many":
                    with _source(options.server) as source:
                        server, tables = f"{source.flavor} {source.version}", options.tables or MANY
                        cold, warm = many_tables(tables), many_tables_warm(Path(folder), source, tables)
                        results = _printed(chain(cold, warm))
                case "start":
                    results = _printed(starts(options.tables or SMALL, options.runs))
                case "server":
                    with _source(options.server) as source:
                        server, tables = f"{source.flavor} {source.version}", options.tables or SMALL
                        results = _printed(server_merges(Path(folder), source, tables, options.merges, options.minutes))
                case "sources":
                    with _source(options.server) as source:
                        server, tables = f"{source.flavor} {source.version}", options.tables or SMALL
                        results = _printed(
                            merges_of_sources(Path(folder), source, options.sources, tables, options.rounds)
                        )
                case "executors":
                    results = _printed(merges_by_executors(Path(folder), min(options.rows[0], ROWS), options.changes))
                case _:
                    figures, server = end_to_end(options.server, options.scale)
                    results = _printed(figures)
        save(results, server, {"load_before": load, **_METHODS[part]}, options.output / f"lake-{part}.json")
    return 0


def _source(kind: str) -> SqlServer:
    return MySqlServer() if kind == "mysql" else MariaDbServer()


def _printed(figures: Iterable[Figure]) -> list[Figure]:
    """Print each figure as soon as it is measured."""
    results = []
    for figure in figures:
        ratio = f", {figure.ratio} x {figure.compared_to}" if figure.compared_to else ""
        goal = "" if figure.goal is None else f", goal {figure.goal:g}: {'met' if figure.met else 'not met'}"
        print(f"{figure.name}: {figure.value:,} {figure.unit}{ratio}{goal}", flush=True)
        results.append(figure)
    return results


if __name__ == "__main__":
    sys.exit(main())
