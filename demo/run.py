"""One run of the demo, from setup to the comparison."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, suppress

from rich.console import Console
from rich.table import Table

from cdc_lib.config import credentials_from_environment, load_source
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import findings_of
from demo import database, paths, server
from demo.paths import AIRFLOW, DATABASE, DemoError, State, shown
from demo.progress import ProgressDisplay, seconds
from demo.shop.compare import TableComparison, compare_database, open_lake
from demo.shop.workload import BackgroundWorkload
from demo.spark import DemoSparkServer
from demo.watch import DAG, RunMonitor
from spark_jobs.runtime.jars import jar_paths
from tests.harness.airflow.standalone import AirflowStandalone

SCHEDULED_RUNS = 3
PATIENCE_SECONDS = 15 * 60
LOOK_SECONDS = 1.5


class Demo:
    """One run of the demo; everything that it starts is stopped when its stack closes.

    Args:
        rows: rows of the shop's seed.
        rate: maximum transactions per second of the workload.
        keep: whether to continue after the verdict until ^C.
    """

    def __init__(self, rows: int, rate: float, keep: bool) -> None:
        self.rows = rows
        self.rate = rate
        self.keep = keep
        self.console = Console(highlight=False)
        self.stack = ExitStack()
        self.began = time.monotonic()

    def run(self) -> bool:
        """Run the demo; returns whether source and lake are equal in every row and column."""
        with paths.only_one(), self.stack:
            self._say("Spark with Iceberg", f"{len(jar_paths(['iceberg', 'sqlite']))} jars")
            state = State.load()
            source = self._start_server(state)
            database.prepare(source, state, self.rows, lambda text: self._say("shop", text))
            spark = DemoSparkServer()
            pipeline = self._open_pipeline(source, spark)
            self.stack.callback(spark.stop)
            spark.start(pipeline.config.merge)
            workload = self._start_workload(source, state)
            air = self._start_airflow()
            self._say("Spark server", spark.wait_until_ready())
            watch = RunMonitor(pipeline, air)
            air.unpause(DAG)
            self._wait_for_runs(watch, workload)
            workload.stop()
            self._catch_up(watch, database.head(source), workload.transactions)
            air.pause(DAG)
            self._say("Spark server", spark.merges())
            found = self._compare(source)
            self._report(found, watch, air)
            if self.keep:
                self._stay(air, source, state)
        return not any(table.differences for table in found)

    # --- setting up ---

    def _start_server(self, state: State) -> server.DemoServer:
        source = server.start(state)
        self.stack.callback(source.stop)
        self._say("server", source.about)
        return source

    def _open_pipeline(self, source: server.DemoServer, spark: DemoSparkServer) -> Pipeline:
        environment = source.environment(spark.environment)
        self.stack.callback(paths.write_environment, source.environment())  # later commands start a Spark of their own
        paths.write_environment(environment)
        os.environ.update(environment)
        paths.BATCHES.mkdir(exist_ok=True)
        paths.LAKE.mkdir(exist_ok=True)
        config = load_source(paths.SOURCE_FILE)
        pipeline = Pipeline.open(config, credentials_from_environment(config.server))
        wrong = [finding for finding in findings_of(pipeline) if finding.level == "error"]
        if wrong:
            lines = "\n".join(f"  {finding.what}: {finding.hint}" for finding in wrong)
            raise DemoError(f"the server is not ready to be followed:\n{lines}")
        self._say("source file", shown(paths.SOURCE_FILE))
        return pipeline

    def _start_workload(self, source: server.DemoServer, state: State) -> BackgroundWorkload:
        state.workloads += 1
        state.save()
        workload = BackgroundWorkload(source.owner, DATABASE, seed=state.workloads, rate=self.rate)
        workload.start()
        self.stack.callback(workload.stop)
        self._say("workload", f"at most {self.rate:g} transactions a second")
        return workload

    def _start_airflow(self) -> AirflowStandalone:
        # A new one each time: Airflow has no state of the pipeline, and runs of an interrupted demo would block.
        shutil.rmtree(AIRFLOW, ignore_errors=True)
        with self.console.status("starting Airflow (up to a minute)"):
            settings = {"AIRFLOW__CORE__TEST_CONNECTION": "Enabled"}  # Airflow has the Test button off
            air = AirflowStandalone(AIRFLOW, paths.ROOT / "dags", paths.ROOT / "plugins", settings)
            self.stack.callback(air.stop)
            air.start()
            air.wait_for_dag(DAG)
        self._say("Airflow", f"{air.url}  user {air.user}  password {air.password}")
        return air

    # --- the main job ---

    def _wait_for_runs(self, watch: RunMonitor, workload: BackgroundWorkload) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with ProgressDisplay(self.console) as progress:
            while (good := watch.good_scheduled_runs()) < SCHEDULED_RUNS:
                workload.check()
                _print_troubles(watch, progress)
                progress.show(
                    watch.look(f"waiting for {SCHEDULED_RUNS} scheduled runs, {good} done", workload.transactions)
                )
                _patience(deadline, f"{SCHEDULED_RUNS} scheduled runs")
        for run in watch.runs():
            self._say("run", f"{run['dag_run_id']}: {run['state']}")

    def _catch_up(self, watch: RunMonitor, head: tuple[str, int], transactions: int) -> None:
        """Wait until the lake has all that the workload did."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with ProgressDisplay(self.console) as progress:
            while not watch.merged_up_to(*head):
                _print_troubles(watch, progress)
                progress.show(watch.look("the workload has stopped; the cursor catches up", transactions))
                _patience(deadline, "the catch-up")
        figures = watch.look("", transactions)
        self._say("caught up", figures.line().removeprefix(": "))

    def _compare(self, source: server.DemoServer) -> list[TableComparison]:
        began = time.monotonic()
        lake = open_lake(os.environ["CDC_LAKE_URI"], os.environ["CDC_LAKE_WAREHOUSE"])
        with self.console.status("comparing every row and column"), lake as catalog:
            found = compare_database(source.owner, DATABASE, catalog)
        self._say("compared", f"every row and column in {time.monotonic() - began:.0f} s")
        return found

    # --- the end ---

    def _report(self, found: list[TableComparison], watch: RunMonitor, air: AirflowStandalone) -> None:
        lag = seconds(watch.status.lag_seconds if watch.status else None)
        table = Table(title="the shop and its lake")
        for name, justify in (("lake table", "left"), ("rows at the source", "right"), ("rows in the lake", "right"),
                              ("differences", "right"), ("lag", "right")):  # fmt: skip
            table.add_column(name, justify="right" if justify == "right" else "left")
        for one in found:
            style = "red" if one.differences else "green"
            table.add_row(f"{DATABASE}.{one.table}", f"{one.source_rows:,}", f"{one.lake_rows:,}",
                          f"[{style}]{one.differences:,}[/]", lag)  # fmt: skip
        self.console.print(table)
        for one in found:
            for text in (*one.wrong_columns, *one.examples):
                self.console.print(f"  {one.table}: {text}", markup=False, style="red")
        page = f"{air.url}/plugin/cdc"
        running = page if self.keep else f"{page} (until now; ./dev demo --keep leaves it running)"
        self._say("Airflow", f"{running}  user {air.user}  password {air.password}")
        env = shown(paths.ENV_FILE)
        self.console.print("\nquery the lake by yourself:", markup=False)
        self.console.print(f"  . {env} && ./dev cdc lake preview shop shop.orders", markup=False, soft_wrap=True)
        self.console.print(
            f'  . {env} && .venv/bin/python -m demo query "SELECT status, count(*) FROM orders GROUP BY 1"',
            markup=False, soft_wrap=True,
        )  # fmt: skip
        verdict = "equal in every row and column" if not any(t.differences for t in found) else "NOT EQUAL"
        self.console.print(f"\n{verdict}; {time.monotonic() - self.began:.0f} s in all", style="bold", markup=False)

    def _stay(self, air: AirflowStandalone, source: server.DemoServer, state: State) -> None:
        workload = self._start_workload(source, state)
        air.unpause(DAG)
        self.console.print("it continues until ^C, or ./dev demo-clean from another terminal", style="bold")
        with suppress(KeyboardInterrupt):
            while True:
                workload.check()
                time.sleep(1)

    def _say(self, what: str, text: str) -> None:
        self.console.print(f"{what:>20}  ", style="bold cyan", end="", markup=False)
        self.console.print(text, markup=False, soft_wrap=True)


def _print_troubles(watch: RunMonitor, progress: ProgressDisplay) -> None:
    for text in watch.troubles():
        progress.print(text)


def _patience(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise DemoError(f"{what}: not after {PATIENCE_SECONDS // 60} minutes")
    time.sleep(LOOK_SECONDS)
