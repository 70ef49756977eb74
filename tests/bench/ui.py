"""How long the CDC page of Airflow waits for its server: ``./dev bench ui``.

Airflow's own API server, over stores in folders: many sources, one source of many tables, one whose store refuses connections,
and one whose store accepts them and never answers. Measured is each request that the page makes, as a client on the same machine
sees it: just after the documents were read, and when what was read is too old, so that it is read again meanwhile. Then the same
while some stores are away. CPU is that of the API server for one answer, its reading in the background included.
"""

from __future__ import annotations

import argparse
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx

from cdc_airflow.page.desk import FRESH
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.bench.airflow import cpu_of_session
from tests.bench.processes import ROOT
from tests.bench.report import Figure, save, spread
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.page_source import PageSource

GOAL = 300.0
"""Most milliseconds of an answer."""

RESOURCES = ("", "/windows", "/tables", "/cuts", "/moves", "/history", "/actions")
MANY = 20
"""Answers of which the CPU is measured at once: the system counts hundredths of a second."""

LIST = "/sources?limit=50"


@dataclass
class Asked:
    """What one path of the page's API took.

    Args:
        name: for people.
        path: below the page's API.
        fresh: milliseconds of answers just after the documents were read.
        old: milliseconds of answers while they are read again.
        cpu: CPU milliseconds of one answer, over many.
        status: the last answer's.
    """

    name: str
    path: str
    fresh: list[float] = field(default_factory=list)
    old: list[float] = field(default_factory=list)
    cpu: float = 0
    status: int = 0


def main() -> int:
    """Measure, print a line for each path, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench ui", description=__doc__)
    parser.add_argument("--sources", type=int, default=200, help="sources of the list")
    parser.add_argument("--tables", type=int, default=5_000, help="tables of the large source")
    parser.add_argument("--runs", type=int, default=7, help="rounds of all requests")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "ui.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    figures = []
    print(f"{'':48}{'fresh':>10}{'while read':>12}{'CPU':>10}", flush=True)
    for asked in measure(options.sources, options.tables, options.runs):
        took = f"{median(asked.fresh):>7.0f} ms{median(asked.old):>9.0f} ms{asked.cpu:>7.1f} ms"
        print(f"{asked.name:48}{took}   {asked.status}", flush=True)
        figures += _figures(asked)
    about = {"load_before": load, "runs": f"{options.runs}, the median counts", "warm_up": "the first answer of each"}
    save(figures, "none", about, options.output)
    return 0


def _figures(asked: Asked) -> Iterator[Figure]:
    for kind, values in (("fresh", asked.fresh), ("while it is read again", asked.old)):
        if values:
            took = round(median(values), 1)
            yield Figure(f"{asked.name}, {kind}", took, "ms", goal=GOAL, met=took <= GOAL, spread=spread(values, 1))
    yield Figure(f"{asked.name}, CPU", round(asked.cpu, 1), "CPU ms")


def measure(sources: int, tables: int, runs: int) -> Iterator[Asked]:
    """Yield what each request took: first with all stores there, then with some away."""
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder, ApiServer.with_page(Path(folder)) as server:
        many(server, sources)
        large(server, tables)
        server.read_dags()
        with server.as_user("op") as client:
            some = "cdc_many0000"
            there = [
                Asked(f"list of {sources + 1} sources", LIST),
                *(Asked(f"a source: {one or '/'}", f"/sources/{some}{one}") for one in RESOURCES),
                *(Asked(f"{tables:,} tables: {one or '/'}", f"/sources/cdc_large{one}") for one in RESOURCES),
                Asked(f"{tables:,} tables: search", "/sources/cdc_large/tables?text=99&order=rows&descending=true"),
            ]
            yield from rounds(server, client, there, runs)
            with away(server, sources):
                silent = [
                    Asked("a store that refuses: /", "/sources/cdc_refused"),
                    Asked("a store that never answers: /", "/sources/cdc_silent0000"),
                    Asked("list, 2 stores away", LIST),
                    Asked("a source beside them: /", f"/sources/{some}"),
                    Asked(f"{tables:,} tables beside them: /tables", "/sources/cdc_large/tables"),
                ]
                yield from rounds(server, client, silent, runs)


def many(server: ApiServer, number: int) -> None:
    """Write small sources of one store."""
    store = LocalStore(server.home / "stores" / "many")
    for one in range(number):
        PageSource(server.home / "sources", store, f"many{one:04d}", windows=5, merged=5, compared=2).write()


def large(server: ApiServer, tables: int) -> None:
    """Write a source of many tables, of which each was compared."""
    names = [TableName("big", f"t{number:05d}") for number in range(tables)]
    store = LocalStore(server.home / "stores" / "large")
    PageSource(server.home / "sources", store, "large", tables=names, windows=20, merged=20, compared=tables).write()


@contextmanager
def away(server: ApiServer, number: int) -> Iterator[None]:
    """Add a source whose store refuses connections, and some, a tenth of all, whose store accepts them and says nothing."""
    silent = [f"silent{one:04d}" for one in range(max(1, number // 10))]
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as quiet, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for name in ("refused", *silent):
            port = (closed if name == "refused" else quiet).getsockname()[1]
            source = PageSource(server.home / "sources", LocalStore(server.home / "stores" / "none"), name)
            source.changed = {
                "store": {
                    "url": "s3://bucket/x",
                    "endpoint_url": f"http://127.0.0.1:{port}",
                    "region": "us-east-1",
                    "access_key_env": "CDC_TEST_PASSWORD",
                    "secret_key_env": "CDC_TEST_PASSWORD",
                }
            }
            source.write_file()
        yield


def rounds(server: ApiServer, client: httpx.Client, asked: list[Asked], runs: int) -> list[Asked]:
    """Ask all in rounds: twice each, the first time when what was read is too old. Then each many times, for its CPU."""
    warm_up(client, asked)
    for _ in range(runs):
        time.sleep(FRESH + 0.5)
        for times in ("old", "fresh"):
            for one in asked:
                began = time.perf_counter()
                answer = client.get(f"/cdc/page{one.path}")
                getattr(one, times).append(1000 * (time.perf_counter() - began))
                one.status = answer.status_code
    for one in asked:
        before = cpu_of_session(server.session)
        for _ in range(MANY):
            client.get(f"/cdc/page{one.path}")
        one.cpu = 1000 * (cpu_of_session(server.session) - before) / MANY
    return asked


def warm_up(client: httpx.Client, asked: list[Asked], seconds: float = 120) -> None:
    """Ask until everything was read once, or is known to be away."""
    deadline = time.monotonic() + seconds
    for one in asked:
        while time.monotonic() < deadline:
            body = client.get(f"/cdc/page{one.path}").json()
            if not (body.get("reading") or body.get("states", {}).get("reading")):
                break
            time.sleep(0.2)


if __name__ == "__main__":
    raise SystemExit(main())
