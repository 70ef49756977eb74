"""The random sequence: what happens at the source, the steps and the wrong steps, kills, crashes and a bad network."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Self

from pyspark.sql import SparkSession

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.merge.plan import tables_of
from cdc_lib.merging import plan_of
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.window import Unit, Window
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.open import open_store
from spark_jobs.application import merge, run
from spark_jobs.batches import load_plan
from spark_jobs.session import spark_session
from tests.support.chaos.customers import Customers
from tests.support.chaos.job import Job, Outcome
from tests.support.chaos.laws import Laws
from tests.support.chaos.places import PLACES, Killed
from tests.support.chaos.wire import Wire
from tests.support.chaos.zygote import Zygote
from tests.support.servers import SqlServer
from tests.support.shop.compare import compare_database, open_lake

SILENCE = 1.5
"""Seconds after which a step gives up on a server that says nothing."""
KILLS_BETWEEN_COMPARISONS = 25
CHANCE_OF_A_KILL = 0.8


class Broken(AssertionError):
    """A law or the comparison found a fault."""


class Chaos:
    """One source under fire.

    Args:
        server: a running one, which is killed now and then.
        config: the source as it is reached without faults.
        database: name of the shop, which is made here.
        folder: for what the steps leave beside the store.
        seed: of everything that is random.
        merge_kills: most merges that are killed; each needs a Spark of its own.
        say: takes a line for each event.
    """

    def __init__(
        self,
        server: SqlServer,
        config: SourceConfig,
        database: str,
        folder: Path,
        seed: int,
        *,
        merge_kills: int,
        rows: int = 600,
        say: Callable[[str], None] = print,
    ) -> None:
        self.server = server
        self.config = config
        self.folder = folder
        self.random = Random(seed)
        self.merge_kills = merge_kills
        self.say = say
        self.killed = Killed()
        self.events: Counter[str] = Counter()
        self.seconds: dict[str, float] = defaultdict(float)
        self.credentials = Credentials(server.cdc_user, server.cdc_password)
        self.store = open_store(config.store)
        self.cursors = ObjectCursorStore(self.store)
        self.laws = Laws(self.store, config.source)
        self._stack = ExitStack()
        self._rows = rows
        self._database = database
        self._jobs = 0
        self._spark: SparkSession | None = None
        self._old_plans: list[MergePlan] = []
        self._old_units: list[Unit] = []

    def __enter__(self) -> Self:
        self._zygote = self._stack.enter_context(Zygote())
        self._wire = self._stack.enter_context(Wire(self.server))
        self.customers = Customers(self.server, self._database, self.random, self._rows)
        self._stack.callback(self.customers.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # --- the sequence

    def run(self, kills: int) -> None:
        """Go on until so many steps were killed and all rows and columns were found equal."""
        compared = 0
        for label in PLACES["plan"]:
            # The first plan makes both cursors, and passes these points in this order.
            self._step("plan", label=label)
        while self.killed.total < kills:
            self._something()
            if self.killed.total - compared >= KILLS_BETWEEN_COMPARISONS:
                compared = self.killed.total
                self.quiet()
        self.quiet()

    def _something(self) -> None:
        weights: dict[Callable[[], Any], float] = {
            self.customers.work: 26,
            self._plan: 16,
            self._drain: 38,
            self._ack_drain: 15,
            self._plan_merge: 8,
            self._merge: 4,
            self._ack_lake: 7,
            self._drain_an_old_unit: 3,
            self._drain_twice_at_once: 2,
            self._merge_an_old_plan: 0.5,
            self._crash: 1,
            self._cut_or_silence: 4,
        }
        chosen = self.random.choices(list(weights), list(weights.values()))[0]
        name = chosen.__name__.strip("_").replace("_", " ")
        began = time.monotonic()
        chosen()
        self.laws.check()
        self.events[name] += 1
        self.seconds[name] += time.monotonic() - began

    def _crash(self) -> None:
        self.say("the server is killed")
        self.customers.crash()

    # --- steps

    def _plan(self) -> Outcome:
        return self._step("plan")

    def _ack_drain(self) -> Outcome:
        return self._step("ack_drain")

    def _plan_merge(self) -> Outcome:
        return self._step("plan_merge")

    def _ack_lake(self) -> Outcome:
        return self._step("ack_lake")

    def _drain(self) -> None:
        units = self._units()
        if units:
            unit = self.random.choice(units)
            self._old_units.append(unit)
            self._step("drain", unit=unit)

    def _drain_an_old_unit(self) -> None:
        """A task that was cleared, or a retry that comes too late."""
        if self._old_units:
            self._step("drain", unit=self.random.choice(self._old_units))

    def _drain_twice_at_once(self) -> None:
        """A task that was given up and still runs, and its retry."""
        units = self._units()
        if units:
            unit = documents.to_plain(self.random.choice(units))
            for outcome in self._zygote.run(*(self._job("drain", unit=unit) for _ in range(2))):
                # The server ends the older of two dumps that ask for the same window.
                self._judge("drain", outcome, allowed={"SourceUnavailable"})

    def _merge(self) -> None:
        """Merge what the lake cursor has in flight; in the warm Spark, or in one that is killed."""
        plan = self._lake_plan()
        if plan is None:
            return
        self._old_plans.append(plan)
        killable = sum(n for label, n in self.killed.counts.items() if label.startswith("merge:")) < self.merge_kills
        if killable and self.random.random() < CHANCE_OF_A_KILL:
            self._step("merge", plan=plan, sure=True)
        else:
            self._merge_well(plan)

    def _merge_an_old_plan(self) -> None:
        """A merge task that is cleared after everything went on."""
        if self._old_plans:
            plan = self.random.choice(self._old_plans)
            self._merge_well(plan)

    def _cut_or_silence(self) -> None:
        """A connection breaks in the middle of a step, or says no more."""
        fault = self.random.choice(("cut", "cut", "half-open"))
        units = self._units()
        step = self.random.choice(("plan", "drain")) if units else "plan"
        unit = documents.to_plain(self.random.choice(units)) if step == "drain" else None
        self._wire.fail(fault, int(10 ** self.random.uniform(1, 4.7)))
        try:
            (outcome,) = self._zygote.run(self._job(step, unit=unit, port=self._wire.own_port))
        finally:
            failed = self._wire.mend()
        self.events[f"{fault} connection" if failed else "connection that was not cut"] += 1
        self._judge(step, outcome, allowed={"SourceUnavailable"} if failed else set())

    def _step(
        self, step: str, *, unit: Unit | None = None, plan: MergePlan | None = None, sure: bool = False, label: str = ""
    ) -> Outcome:
        job = self._job(
            step,
            unit=None if unit is None else documents.to_plain(unit),
            plan=None if plan is None else documents.to_plain(plan),
        )
        aimed = label or None
        if label:
            job = replace(job, label=label)
        elif sure or self.random.random() < CHANCE_OF_A_KILL:
            other = "of a chunk" if isinstance(unit, Window) else "of a window"
            aimed = self.killed.next(step, self.random, without=[other] if step == "drain" else [])
            job = self._deadly(job, aimed)
        (outcome,) = self._zygote.run(job)
        if aimed is not None:
            self.killed.note(aimed, outcome.killed_at)
        if outcome.killed_at is not None:
            assert outcome.status == -9, outcome
            self.say(f"kill {self.killed.total}: {outcome.killed_at}{'' if job.group else ' (its children live on)'}")
        else:
            self._judge(step, outcome, allowed=set())
        return outcome

    def _deadly(self, job: Job, label: str) -> Job:
        job = replace(job, group=job.step != "merge" or self.random.random() < 0.6)
        if label.endswith("at any moment"):
            most = 14.0 if job.step == "merge" else 0.5
            return replace(job, after=self.random.uniform(0.01, most))
        return replace(job, label=label, nth=self.random.choice((1, 1, 1, 2)))

    def _job(
        self, step: str, *, unit: dict[str, Any] | None = None, plan: dict[str, Any] | None = None, port: int = 0
    ) -> Job:
        self._jobs += 1
        config = self.config
        if port:
            config = config.model_copy(update={"server": config.server.model_copy(update={"port": port})})
        return Job(
            step=step,
            config=config.model_dump_json(),
            user=self.credentials.user,
            password=self.credentials.password,
            folder=str(self.folder / "jobs" / f"{self._jobs:05d}-{step}"),
            unit=unit,
            plan=plan,
            clock=self.random.randrange(-100_000, 100_000),
            silence=SILENCE if port else 30.0,
        )

    def _judge(self, step: str, outcome: Outcome, *, allowed: set[str]) -> None:
        """Only what the faults of this moment explain may have ended a step."""
        allowed = allowed | {"ack_drain": {"BatchNotDurable"}, "ack_lake": {"BatchNotDurable"}}.get(step, set())
        if self.cursors.load(self.config.source, LAKE) is None:
            allowed.add("CursorMoved")  # nobody has planned yet
        if not outcome.done and outcome.error not in allowed:
            raise Broken(f"{step} ended with {outcome.status} {outcome.error}: {outcome.said}")
        if outcome.error:
            self.events[f"{step}: {outcome.error}"] += 1
            if allowed & {"SourceUnavailable"} and outcome.error == "SourceUnavailable" and not outcome.retryable:
                raise Broken(f"{outcome.error} cannot be tried again")

    def _merge_well(self, plan: MergePlan) -> None:
        """Merge in the warm Spark; a plan without changes needs none."""
        batches = load_plan(self.store, plan)
        if tables_of(batches):
            merge(self._warm_spark(), self.config, plan, self.store, lambda _: None, batches=batches)
        else:
            run(self.config, plan, self.store)

    # --- looking

    def _units(self) -> list[Unit]:
        drain = self.cursors.load(self.config.source, DRAIN)
        return [] if drain is None else [*drain.open_snapshots, *drain.in_flight]

    def _lake_plan(self) -> MergePlan | None:
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or not (lake.in_flight or lake.in_flight_snapshots):
            return None
        return plan_of(lake)

    def _warm_spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._stack.enter_context(spark_session(self.config))
        return self._spark

    # --- quiet

    def quiet(self) -> None:
        """Let every step end well until the lake has everything; then compare all rows, columns and documents.

        Raises:
            Broken: something differs.
        """
        for _ in range(6):
            self._round()
            if self._caught_up():
                break
        else:
            raise Broken("six undisturbed rounds do not bring the lake to the end of the binlog")
        documents_seen = self.laws.check_documents()
        again = self._drain_again()
        assert self.config.lake.uri is not None
        assert self.config.lake.warehouse is not None
        catalog = open_lake(self.config.lake.uri, self.config.lake.warehouse)
        try:
            found = compare_database(self.customers.options(), self._database, catalog)
        finally:
            catalog.engine.dispose()
        wrong = [table for table in found if table.differences]
        rows = sum(table.source_rows for table in found)
        self.say(
            f"compared {rows} rows of {len(found)} tables, {documents_seen} documents, {again} windows drained again"
        )
        self.events["rows compared"] += rows
        if wrong:
            raise Broken("\n".join(map(str, wrong)))

    def _round(self) -> None:
        """What one run of the DAG does."""
        pipeline = Pipeline(self.config, self.credentials, self.store, self.cursors)
        for unit in pipeline.plan(by="quiet"):
            pipeline.drain(unit)
        self.laws.check()
        pipeline.ack_drain(by="quiet")
        self.laws.check()
        plan = pipeline.plan_merge(by="quiet")
        if plan is not None:
            self._old_plans.append(plan)
            self._merge_well(plan)
            pipeline.ack_lake(by="quiet")
        self.laws.check()

    def _caught_up(self) -> bool:
        drain, lake = (self.cursors.load(self.config.source, consumer) for consumer in (DRAIN, LAKE))
        assert drain is not None
        assert lake is not None
        done = {task.id: task.chunks for task in lake.snapshots}
        merged = all(done.get(task.id) == task.chunks for task in drain.snapshots)
        head = Pipeline(self.config, self.credentials, self.store, self.cursors).status().head
        return merged and not drain.open_snapshots and drain.position == lake.position == head

    def _drain_again(self) -> int:
        """Drain a few windows of the past once more, elsewhere."""
        cursor = self.cursors.load(self.config.source, DRAIN)
        assert isinstance(cursor, Cursor)
        windows = self.random.sample(self.laws.windows, min(3, len(self.laws.windows)))
        for number, window in enumerate(windows):
            empty = self.folder / "again" / f"{self.killed.total}-{number}"
            self.laws.drains_to_the_same(window, self.config, self.credentials, cursor, empty)
        return len(windows)
