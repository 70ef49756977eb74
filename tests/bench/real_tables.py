"""Cost of each step with many real tables of one source: the real commands, on a real server and a real store."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.config import Credentials, load_source
from cdc_lib.pipeline import Pipeline
from tests.bench.lake.end_to_end import PASSWORD, source_file
from tests.bench.report import Figure, save
from tests.bench.usage import CommandFailed, measure
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

ROWS = 5
"""Rows of each table at the beginning."""

FEW = 20
"""Tables with changes, of all, in the last merge."""

REAL_SIZES = (1_250, 2_500, 5_000)
"""Numbers of tables."""


def real_tables(kind: str, sizes: Sequence[int], load: float, output: Path, *, merges: bool) -> int:
    """Measure each number of tables, print what each step takes for one table, and save.

    Args:
        kind: of server.
        sizes: numbers of tables.
        load: of the machine before.
        output: the file.
        merges: whether the tables are merged too.
    """
    measured: dict[int, dict[str, Cost]] = {}
    with MySqlServer() if kind == "mysql" else MariaDbServer() as server:
        for size in sorted(sizes):
            measured[size] = {}
            with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
                for step, cost in RealTables(server, Path(folder), size, merges=merges).costs():
                    measured[size][step] = cost
                    print(f"{size:,} tables, {step}: {cost.wall} s, {cost.cpu} CPU s", flush=True)
        version = f"{server.flavor} {server.version}"
    least, most = min(measured), max(measured)
    print(
        f"\n{'ms of wall time and of CPU for each table':36}"
        + "".join(f"{size:>18,}" for size in measured)
        + "   ratio of CPU"
    )
    for step, first in measured[least].items():
        each = (
            f"{1000 * cost[step].wall / size:>9.2f}{1000 * cost[step].cpu / size:>9.2f}"
            for size, cost in measured.items()
        )
        ratio = measured[most][step].cpu / most / max(first.cpu / least, 1e-6)
        print(f"{step:36}{''.join(each)}{ratio:>10.2f}")
    figures = [
        Figure(f"{size:,} tables, {step}{what}", value, unit)
        for size, costs in measured.items()
        for step, cost in costs.items()
        for what, value, unit in ((": wall", cost.wall, "s"), (": CPU", cost.cpu, "CPU s"))
    ]
    save(figures, version, {"load_before": load, "runs": "1 of each size", "warm_up": "none"}, output)
    return 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step took.

    Args:
        wall: seconds.
        cpu: CPU seconds of this process, and of the processes that the step started; not of the server.
    """

    wall: float
    cpu: float


class RealTables:
    """A source of small tables, and the steps of its runs.

    Args:
        server: of the tables; a database is made in it.
        folder: for the source file, store and lake.
        size: number of tables.
        merges: whether the steps that need Spark are done too.
    """

    def __init__(self, server: SqlServer, folder: Path, size: int, *, merges: bool) -> None:
        self.server, self.folder, self.size, self.merges = server, folder, size, merges
        self.database = f"many_{size}"
        os.environ[PASSWORD] = server.cdc_password
        self._cdc = source_file(folder, server, f"{self.database}.*", start="snapshot")
        self._make()

    def costs(self) -> Iterator[tuple[str, Cost]]:
        """Do the steps of three runs, and yield the name and cost of each."""
        yield from self._run("snapshots", lambda: None)
        yield from self._run("changes in all", lambda: self._change(self.size))
        if self.merges:
            yield from self._run(f"changes in {FEW}", lambda: self._change(min(FEW, self.size)))
        else:
            yield "merge of all that, plan", self._measured(self._plan_merge)
        yield from self._looks()

    def _run(self, what: str, change: Callable[[], None]) -> Iterator[tuple[str, Cost]]:
        change()
        yield f"{what}, plan", self._command("step", "plan", "bench")
        yield f"{what}, plan in flight", self._command("step", "plan", "bench")
        yield f"{what}, drain", self._command("step", "drain", "bench")
        yield f"{what}, ack", self._command("step", "ack", "drain", "bench")
        if self.merges:
            yield f"{what}, plan of the merge", self._measured(self._plan_merge)
            used, _ = measure([*self._cdc, "step", "merge", "bench"])
            yield f"{what}, merge", Cost(used.wall, used.cpu)
            yield f"{what}, ack of the merge", self._command("step", "ack", "lake", "bench")

    def _looks(self) -> Iterator[tuple[str, Cost]]:
        """Yield what commands take that change nothing."""
        yield "plan, nothing new", self._command("step", "plan", "bench")
        yield "status", self._command("status")
        yield "metrics", self._command("metrics")
        yield "doctor", self._command("doctor", may_fail=True)  # a check may take longer than it waits
        yield "cursor show", self._command("cursor", "show", "bench")
        if self.merges:
            yield "lake tables", self._command("lake", "tables", "bench")
            yield "lake cuts", self._command("lake", "cuts", "bench")

    def _command(self, *words: str, may_fail: bool = False) -> Cost:
        """Run a command in this process, so that its start is not counted."""

        def run() -> None:
            done = CliRunner().invoke(app, ["--sources", str(self.folder), *words])
            if done.exit_code and not may_fail:
                raise CommandFailed(f"cdc {' '.join(words)}: {done.output[-3000:]}") from done.exception

        return self._measured(run)

    def _measured(self, step: Callable[[], object]) -> Cost:
        began, cpu = time.perf_counter(), _cpu()
        step()
        return Cost(round(time.perf_counter() - began, 3), round(_cpu() - cpu, 3))

    def _plan_merge(self) -> None:
        login = Credentials(self.server.cdc_user, self.server.cdc_password)
        plan = Pipeline.open(load_source(self.folder / "bench.yaml"), login).plan_merge(by="bench")
        if plan is None:
            raise AssertionError

    def _make(self) -> None:
        self.server.execute(f"CREATE DATABASE {self.database}")
        rows = ", ".join(f"({key}, 'value {key}')" for key in range(ROWS))
        self._for_each(
            self.size,
            "CREATE TABLE {0} (id INT PRIMARY KEY, v VARCHAR(30))",
            f"INSERT INTO {{0}} VALUES {rows}",
        )

    def _change(self, tables: int) -> None:
        self._for_each(tables, f"UPDATE {{0}} SET v = CONCAT(v, '+') WHERE id < {ROWS // 2}")

    def _for_each(self, tables: int, *statements: str) -> None:
        with closing(self.server.connect(database=self.database)) as connection, connection.cursor() as cursor:
            for number in range(tables):
                for statement in statements:
                    cursor.execute(statement.format(f"table_{number:05d}"))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime
