"""CPU seconds that a DAG processor takes to read the DAG files of many sources: ``./dev bench parsing``.

Each file is read in a fork, as a DAG processor does it every 30 seconds: the fork makes the DAGs and serializes them. Beside them
is a file with as many DAGs and tasks of Airflow's `EmptyOperator`, which shows what Airflow itself takes for DAGs of this number.
What the DAG processor then does with the database is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from tests.bench.processes import ROOT
from tests.bench.report import Figure, save, spread

GOAL = 1.0
"""Most CPU seconds of all DAG files together."""
OWN_FILES = ("cdc_sources.py", "cdc_maintenance.py", "cdc_wrong_sources.py")
EMPTY = "empty.py"
SOURCE = """
server: {{host: db-{number}.example.com, user: cdc, password_env: BENCH_PASSWORD}}
tables: ["shop.*"]
schedule: "*/5 * * * *"
store: {{url: "file:///tmp/bench/store"}}
lake: {{type: rest, uri: "http://catalog.example.com:8181", warehouse: "s3://lake"}}
"""
EMPTY_DAGS = """
from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

for number in range({sources}):
    for kind, tasks in enumerate({tasks}):
        schedule = None if kind else "*/5 * * * *"
        with DAG(f"d{{number}}_{{kind}}", schedule=schedule, start_date=datetime(2026, 1, 1), catchup=False) as dag:
            before = None
            for task in range(tasks):
                one = EmptyOperator(task_id=f"t{{task}}")
                if before is not None:
                    before >> one
                before = one
        globals()[dag.dag_id] = dag
"""

Seconds = dict[str, float]


def main() -> int:
    """Measure, print a line for each figure, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench parsing", description=__doc__)
    parser.add_argument("--sources", type=int, default=200, help="number of source files")
    parser.add_argument("--runs", type=int, default=5, help="times that each file is read")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "parsing.json", help="the file")
    options = parser.parse_args()
    load = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        figures = measure(Path(folder), options.sources, options.runs)
    for figure in figures:
        print(f"{figure.name:75}{figure.value:8.2f} {figure.unit}")
    about = {
        "load_before": load,
        "runs": f"{options.runs} of each",
        "warm_up": "Airflow and `[cdc] preload` are imported before",
    }
    save(figures, "none", about, options.output)
    return 0


def measure(folder: Path, sources: int, runs: int) -> list[Figure]:
    """Return the figures of a folder of so many source files, which is made here."""
    _prepare(folder, sources)
    empty = folder / "dags" / EMPTY
    files = {name: ROOT / "dags" / name for name in OWN_FILES}
    tasks = _tasks_of_a_source(files["cdc_sources.py"], sources)
    empty.write_text(EMPTY_DAGS.format(sources=sources, tasks=tasks))
    files[EMPTY] = empty
    # One after another in each run, so that what else the machine does meets all of them.
    rounds = [{name: _in_a_fork(partial(_read, path)) for name, path in files.items()} for _ in range(runs)]
    taken = {name: [one[name] for one in rounds] for name in files}
    plain = taken.pop(EMPTY)
    together = [sum(taken[name][run]["all"] for name in taken) for run in range(runs)]
    floor = median(one["all"] for one in plain)
    total, dags = median(together), sources * len(tasks)
    of_sources = taken["cdc_sources.py"]
    loads = [_in_a_fork(_load_sources)["load"] for _ in range(runs)]
    ratio = round(median(one["all"] for one in of_sources) / floor, 2)
    name = f"{dags:,} empty DAGs"
    return [
        Figure(f"{sources} sources: all DAG files", round(total, 2), "CPU s", None, None, GOAL, total <= GOAL, spread(together, 2)),
        _figure(f"cdc_sources.py: {dags:,} DAGs", "all", of_sources, (name, ratio)),
        _figure("of it: the DAGs are made", "make", of_sources),
        Figure("of that: the source files are loaded", round(median(loads), 2), "CPU s", spread=spread(loads, 2)),
        _figure("of it: Airflow serializes the DAGs", "serialize", of_sources),
        _figure("of that: Airflow checks the result with its JSON schema", "check", of_sources),
        _figure(f"cdc_maintenance.py: one DAG of {2 * sources} tasks", "all", taken["cdc_maintenance.py"]),
        _figure("cdc_wrong_sources.py: the DAGs are made, and thrown away", "all", taken["cdc_wrong_sources.py"]),
        _figure(f"for comparison: {name} with as many tasks of EmptyOperator", "all", plain),
    ]  # fmt: skip


def _figure(name: str, what: str, runs: list[Seconds], compared: tuple[str, float] | None = None) -> Figure:
    taken = [run[what] for run in runs]
    return Figure(name, round(median(taken), 2), "CPU s", *(compared or (None, None)), spread=spread(taken, 2))


def _prepare(folder: Path, sources: int) -> None:
    """Write the source files, and import what a DAG processor has imported before it reads the first file."""
    for name in ("sources", "dags"):
        (folder / name).mkdir()
    for number in range(sources):
        (folder / "sources" / f"shop_{number:04d}.yaml").write_text(SOURCE.format(number=number))
    settings = {
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "LOGGING__LOGGING_LEVEL": "ERROR",
    }
    os.environ |= {f"AIRFLOW__{name}": value for name, value in settings.items()}
    os.environ |= {"AIRFLOW_HOME": str(folder), "CDC_SOURCES": str(folder / "sources"), "BENCH_PASSWORD": "none"}
    sys.path.insert(0, str(ROOT / "plugins"))
    import airflow.dag_processing.processor
    import airflow.jobs.dag_processor_job_runner
    import airflow.providers.standard.operators.empty  # noqa: F401 - Airflow imports before what a DAG file has of it
    from airflow.jobs.job import Job

    Job()  # calls the plugin, as the start of a DAG processor does


def _in_a_fork(work: Callable[[], Seconds]) -> Seconds:
    """Return the CPU seconds of parts of the work, and as ``all`` those of the process that did it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"the process that reads a DAG file ended with status {status}")
    taken = json.loads(answer)
    # The check is done once more to be measured.
    return {**taken, "all": used.ru_utime + used.ru_stime - taken.get("check", 0.0)}


def _read(file: Path) -> Seconds:
    """Read a file as a DAG processor does.

    Raises:
        RuntimeError: a DAG cannot be read.
    """
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.serialization.serialized_objects import DagSerialization

    began = time.process_time()
    bag = BundleDagBag(file, bundle_path=file.parent, bundle_name="bench", load_op_links=False)
    if bag.import_errors:
        raise RuntimeError(bag.import_errors)
    made = time.process_time()
    serialized = [DagSerialization.to_dict(dag) for dag in bag.dags.values()]
    done = time.process_time()
    for document in serialized:
        DagSerialization.validate_schema(document)
    return {"make": made - began, "serialize": done - made, "check": time.process_time() - done}


def _load_sources() -> Seconds:
    from cdc_lib.config import load_sources

    began = time.process_time()
    load_sources(os.environ["CDC_SOURCES"])
    return {"load": time.process_time() - began}


def _tasks_of_a_source(file: Path, sources: int) -> list[int]:
    """Return the number of tasks of each DAG of a source."""
    from airflow.dag_processing.dagbag import BundleDagBag

    bag = BundleDagBag(file, bundle_path=file.parent, bundle_name="bench", load_op_links=False)
    dags = list(bag.dags.values())
    return [len(dag.tasks) for dag in dags[: len(dags) // sources]]


if __name__ == "__main__":
    raise SystemExit(main())
