"""The results as a printed table and as ``build/bench/drain.json``."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.readers import Measured
from tests.bench.stages import STAGES

DRAIN, RAW = "this drain", "mysqlbinlog --raw"
PYTHON, GO, JAVA = "mysql-replication", "go-mysql", "mysql-binlog-connector-java"
PEERS = (PYTHON, GO, JAVA)
"""Readers of other projects, which decode every row."""
GOAL = 55.0
"""Rows per CPU second, as a multiple of mysql-replication's, on the workloads with one table."""
MEMORY_GOAL = 768
"""Most MiB of memory."""
ROOT = Path(__file__).parents[2]
WARM_UP = (
    "the start of each process; the drain and go-mysql read a small window of the same table before, and "
    "mysql-binlog-connector-java the whole window, so that its code is compiled"
)
_PACKAGES = ("mysql-replication", "numba", "numpy", "pyarrow", "pymysql", "pyspark")


@dataclass(frozen=True, slots=True)
class Reading:
    """One reader on one workload.

    Args:
        workload: its name.
        reader: which one.
        wall_goal: least wall speed, as a part of the raw copy's.
        rows: row changes that it read; for mysql-replication those of its slice.
        of_rows: row changes of the workload.
        bytes: bytes of binlog that it read; for a slice in proportion.
        took: cost of the run that counts.
        runs: costs of all runs, with the one that counts.
    """

    workload: str
    reader: str
    wall_goal: float
    rows: int
    of_rows: int
    bytes: int
    took: Measured
    runs: Sequence[Measured] = ()

    @property
    def rows_per_cpu(self) -> float:
        """Rows a CPU second."""
        return self.rows / max(self.took.cpu, 1e-6)

    @property
    def bytes_per_second(self) -> float:
        """Bytes of binlog a wall second."""
        return self.bytes / max(self.took.wall, 1e-6)


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A reader that could not be measured.

    Args:
        workload: its name; ``all`` for a reader that is not on the machine.
        reader: which one.
        why: one line.
    """

    workload: str
    reader: str
    why: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, and what it is compared with.

    Args:
        name: what was measured.
        value: of the run that counts.
        unit: of the value.
        compared_to: what the ratio compares with, measured in the same run of the command.
        ratio: the value as a multiple of that.
        goal: the project's target.
        met: whether the value, or the ratio, reaches the goal.
        spread: the least and the largest value over all runs; None where there was one run.
    """

    name: str
    value: float
    unit: str
    compared_to: str | None = None
    ratio: float | None = None
    goal: float | None = None
    met: bool | None = None
    spread: tuple[float, float] | None = None


def spread(values: Iterable[float], digits: int = 3) -> tuple[float, float] | None:
    """Return the least and the largest of several runs; None for a single run."""
    ordered = sorted(values)
    return (round(ordered[0], digits or None), round(ordered[-1], digits or None)) if len(ordered) > 1 else None


def figures(readings: Sequence[Reading]) -> list[Figure]:
    """Return every number of the table, with its goal if it has one."""
    numbers: list[Figure] = []
    for reading in readings:
        peer = _other(readings, reading, PYTHON)
        raw = _other(readings, reading, RAW)
        name = f"{reading.workload} {reading.reader}"
        took = reading.took
        is_drain = reading.reader == DRAIN
        if reading.reader != RAW:
            ratio = reading.rows_per_cpu / peer.rows_per_cpu if is_drain and peer else None
            goal = GOAL if ratio is not None and reading.workload in ("W1", "W2", "W3") else None
            numbers.append(
                Figure(
                    f"{name}: rows per CPU second", round(reading.rows_per_cpu), "rows/s",
                    PYTHON if ratio else None, _rounded(ratio), goal, ratio >= GOAL if ratio and goal else None,
                )
            )  # fmt: skip
        if is_drain:
            numbers += _compared_with_others(readings, reading)
        numbers += [
            _wall(name, reading, raw if is_drain else None),
            Figure(f"{name}: CPU", round(took.cpu, 3), "s", spread=spread(run.cpu for run in reading.runs)),
            Figure(f"{name}: start-up CPU", round(took.start_cpu, 3), "s"),
            Figure(f"{name}: speed", round(reading.bytes_per_second / 1e6, 1), "MB/s"),
            Figure(f"{name}: rows read", reading.rows, "rows"),
        ]
        if took.peak_rss is not None:
            mib = round(took.peak_rss / 2**20)
            goal = MEMORY_GOAL if is_drain else None
            numbers.append(Figure(f"{name}: peak memory", mib, "MiB", goal=goal, met=mib <= goal if goal else None))
    return numbers


def comparison(workload: str, peer: str) -> str:
    """Return the name of the figure whose ratio compares the drain's rows per CPU second with a peer's."""
    name = f"{workload} {DRAIN}: rows per CPU second"
    return name if peer == PYTHON else f"{name}, beside {peer}"


def _compared_with_others(readings: Sequence[Reading], drain: Reading) -> list[Figure]:
    """Return the drain's rows per CPU second compared with each peer, except the peer of the goal."""
    value = drain.rows_per_cpu
    return [
        Figure(comparison(drain.workload, peer), round(value), "rows/s", peer, _rounded(value / other.rows_per_cpu))
        for peer in PEERS
        if peer != PYTHON and (other := _other(readings, drain, peer))
    ]


def stage_figures(stages: Mapping[str, Mapping[str, float]]) -> list[Figure]:
    """Return CPU seconds by workload and stage."""
    return [
        Figure(f"{workload} stage {stage}", round(seconds, 3), "CPU s")
        for workload, of_stages in stages.items()
        for stage, seconds in of_stages.items()
    ]


def show_stages(stages: Mapping[str, Mapping[str, float]], console: Console) -> None:
    """Print the CPU seconds of the drain by stage."""
    table = Table(title="CPU seconds of the drain, by stage")
    table.add_column("", no_wrap=True)
    for stage in STAGES:
        table.add_column(stage, justify="right", no_wrap=True)
    for workload, of_stages in stages.items():
        table.add_row(workload, *(f"{of_stages.get(stage, 0.0):.2f}" for stage in STAGES))
    console.print(table)
    console.print("\n".join(f"{stage}: {meaning}" for stage, meaning in STAGES.items()), highlight=False)


def _wall(name: str, reading: Reading, raw: Reading | None) -> Figure:
    """Wall seconds; for the drain also its speed as a part of the raw copy's."""
    wall = round(reading.took.wall, 3)
    between = spread(run.wall for run in reading.runs)
    if raw is None:
        return Figure(f"{name}: wall", wall, "s", spread=between)
    ratio = raw.took.wall / reading.took.wall
    met = ratio >= reading.wall_goal
    return Figure(f"{name}: wall", wall, "s", RAW, _rounded(ratio), reading.wall_goal, met, between)


def _other(readings: Iterable[Reading], like: Reading, reader: str) -> Reading | None:
    return next((r for r in readings if r.workload == like.workload and r.reader == reader), None)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 2)


def show(readings: Sequence[Reading], missing: Sequence[NotMeasured], server: str, console: Console) -> None:
    """Print the table, and what was not measured."""
    table = Table(title=f"Reading the binlog of {server}")
    for heading in ("", "reader"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        "rows",
        "MB",
        "wall s",
        "CPU s",
        "rows/CPU s",
        "MB/s",
        "MiB",
        "drain: x its\nrows/CPU s",
        "speed\nx raw",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    before = ""
    for reading in readings:
        if before and before != reading.workload:
            table.add_section()
        first = reading.workload != before
        before = reading.workload
        table.add_row(reading.workload if first else "", *_cells(readings, reading))
    console.print(table)
    for entry in missing:
        console.print(f"not measured: {entry.workload}, {entry.reader}: {entry.why}", highlight=False, markup=False)
    console.print(_notes(readings), highlight=False)


def _cells(readings: Sequence[Reading], reading: Reading) -> list[str]:
    drain, raw = _other(readings, reading, DRAIN), _other(readings, reading, RAW)
    took = reading.took
    is_slice = reading.rows < reading.of_rows
    return [
        reading.reader,
        f"{reading.rows:,}{' *' if is_slice else ''}",
        f"{reading.bytes / 1e6:,.1f}",
        f"{took.wall:.2f}",
        f"{took.cpu:.2f}",
        "" if reading.reader == RAW else f"{reading.rows_per_cpu:,.0f}",
        f"{reading.bytes_per_second / 1e6:,.0f}",
        "" if took.peak_rss is None else f"{took.peak_rss / 2**20:,.0f}",
        f"{drain.rows_per_cpu / reading.rows_per_cpu:.2f}" if drain and reading.reader in PEERS else "",
        f"{raw.took.wall / took.wall:.2f}" if raw and reading.reader == DRAIN else "",
    ]


def _notes(readings: Sequence[Reading]) -> str:
    start = max((r.took.start_cpu for r in readings if r.reader == DRAIN), default=0.0)
    lines = [
        f"goal: {GOAL:.0f} times the rows per CPU second of {PYTHON}. raw: {RAW}, which decodes nothing.",
        f"{', '.join(PEERS)} decode every row and throw the values away. The drain writes zstd Parquet and its manifest.",
        "Each in a process of its own; of several runs the one with the least CPU. CPU seconds are those of all threads.",
        f"Not counted: {WARM_UP}: {start:.1f} CPU s for the drain.",
    ]
    if any(r.rows < r.of_rows for r in readings):
        lines.append("* a slice from the beginning of the same binlog, its MB in proportion to its rows")
    return "\n".join(lines)


def command() -> str:
    """Return the running command as a user types it."""
    spec = sys.modules["__main__"].__spec__
    module = "" if spec is None else spec.name.removeprefix("tests.bench.").removesuffix(".__main__")
    return " ".join(["./dev bench", module.replace("_", "-"), *sys.argv[1:]])


def about_the_run(server: str) -> dict[str, Any]:
    """Return command, date, commit, machine and versions, which every file of results has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "command": command(),
        "measured_at": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": _commit(),
        "machine": {"cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1)},
        "load_after": round(os.getloadavg()[0], 2),
        "versions": {
            "server": server,
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
    }


def _commit() -> str | None:
    """Return the commit of the checkout, with ``-dirty`` if files were changed; None if git does not know it."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def save(
    figures: Sequence[Figure],
    server: str,
    about: Mapping[str, object],
    path: Path,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the file of results; make its folder if it does not exist.

    Args:
        figures: what was measured.
        server: the database server's name and version.
        about: other facts for the page: ``load_before``, and as text ``runs`` (how many, and which of them counts), ``warm_up``
            (what is not counted) and ``slices`` (the workloads of which a reader reads only a part).
        path: of the file.
        versions: of measured programs that are not Python packages, by name.
    """
    run = about_the_run(server)
    document = {
        **run,
        "versions": {**run["versions"], **(versions or {})},
        **about,
        "figures": [asdict(figure) for figure in figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
