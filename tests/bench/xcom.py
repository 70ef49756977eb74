"""What runs of a source of many tables leave in Airflow: ``./dev bench xcom``.

`airflow standalone` with SQLite, a MySQL server, and one source. Measured are its first run, which reads every table, a run with
changes in a few tables, and a run that finds nothing to do. Bytes are those of the columns in Airflow's database, of the files of the
tasks' logs, and of the API's answer from which the page of a run is drawn.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

from tests.bench.processes import ROOT
from tests.bench.report import Figure, save
from tests.harness.airflow.source import AirflowSource, log_ins
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.servers import MySqlServer

CHANGED = 20
"""Tables with changes in a usual run."""

EVENTS = "events of assets"

QUERIES = {
    "XCom": ("bytes", "SELECT sum(length(CAST(value AS BLOB))) FROM xcom WHERE run_id = ?"),
    "rendered templates": (
        "bytes",
        "SELECT sum(length(CAST(rendered_fields AS BLOB))) FROM rendered_task_instance_fields WHERE run_id = ?",
    ),
    EVENTS: (
        "bytes",
        "SELECT sum(length(CAST(extra AS BLOB))) FROM asset_event WHERE source_run_id = ?",
    ),
    "task instances": ("rows", "SELECT count(*) FROM task_instance WHERE run_id = ?"),
    "mapped drains": ("rows", "SELECT count(*) FROM task_instance WHERE task_id = 'drain' AND map_index >= 0 AND run_id = ?"),
}  # fmt: skip


def main() -> int:
    """Measure, print a line for each figure, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench xcom", description=__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="tables of the source")
    parser.add_argument(
        "--no-merges",
        action="store_true",
        help="mark each merge as success when it begins: Spark takes minutes for many tables, which add nothing to its XCom",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "xcom.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    figures = measure(options.tables, merges=not options.no_merges)
    for figure in figures:
        print(f"{figure.name:70}{figure.value:>12,} {figure.unit}")
    save(figures, "none", {"load_before": load, "runs": "1 of each kind", "warm_up": "none"}, options.output)
    return 0


def measure(tables: int, *, merges: bool) -> list[Figure]:
    """Return the figures of each kind of run; without merges, no asset has an event and no run finds nothing to do."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakecdc-bench-")))
        server = stack.enter_context(MySqlServer())
        os.environ.update(log_ins(server))
        (folder / "sources").mkdir()
        env = {"CDC_SOURCES": str(folder / "sources"), **log_ins(server)}
        air = stack.enter_context(AirflowStandalone(folder / "home", ROOT / "dags", ROOT / "plugins", env))
        name = f"shop_{secrets.token_hex(4)}"
        server.execute(f"CREATE DATABASE {name}")
        source = AirflowSource(
            name, server, folder / "sources", folder / name, merge={"driver_memory": "3g", "parallelism": 4}
        ).write()
        created = (f"CREATE TABLE table_{number:04d} (id INT PRIMARY KEY, v INT)" for number in range(tables))
        filled = (f"INSERT INTO table_{number:04d} VALUES (1, 1)" for number in range(tables))
        source.sql(*created, *filled)
        air.wait_for_dag(source.dag)
        air.unpause(source.dag)
        figures = _run(air, source, f"first run, {tables:,} tables", merges=merges)
        source.sql(*(f"UPDATE table_{number:04d} SET v = v + 1" for number in range(min(CHANGED, tables))))
        kind = f"changes in {min(CHANGED, tables)} of {tables:,} tables"
        figures += _run(air, source, kind, merges=merges)
        if merges:
            figures += _run(air, source, f"nothing to do, {tables:,} tables", merges=True)
        return figures


def _run(air: AirflowStandalone, source: AirflowSource, kind: str, *, merges: bool) -> list[Figure]:
    """Make one run, and return its figures."""
    run_id = air.trigger(source.dag)
    if not merges:
        air.wait("the merge has begun", lambda: _state(air, source, run_id, "merge") == "running", 3600)
        air.mark(source.dag, run_id, "merge", "success")
    run = air.wait_for_run(source.dag, run_id, 3600)
    if merges and run["state"] != "success":  # without its cut, the ack of a merge fails
        raise AssertionError(run)
    figures = []
    with closing(sqlite3.connect(air.home / "airflow.db", timeout=60)) as database:
        for what, (unit, query) in QUERIES.items():
            if what == EVENTS and not merges:
                continue
            (value,) = database.execute(query, (run_id,)).fetchone()
            figures.append(Figure(f"{kind}: {what}", value or 0, unit))
    logs = sum(file.stat().st_size for file in (air.home / "logs").glob(f"**/run_id={run_id}/**/*") if file.is_file())
    path = f"/dags/{source.dag}/dagRuns/{run_id}/taskInstances?limit=1000"
    assert air._client is not None
    answer = len(air._client.get(f"/api/v2{path}").content)
    took = datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
    return [
        *figures,
        Figure(f"{kind}: logs of tasks", logs, "bytes"),
        Figure(f"{kind}: task instances as the API lists them", answer, "bytes"),
        *([Figure(f"{kind}: wall", round(took.total_seconds(), 1), "s")] if merges else []),
    ]


def _state(air: AirflowStandalone, source: AirflowSource, run_id: str, task: str) -> str | None:
    """Return the state of a task that is not mapped."""
    return next(one["state"] for one in air.tasks(source.dag, run_id) if one["task_id"] == task)


if __name__ == "__main__":
    raise SystemExit(main())
