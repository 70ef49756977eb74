"""The random sequence: what happens at the source, the steps and the wrong steps, kills, crashes and a bad network."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

from pyspark.sql import SparkSession

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.merge.plan import tables_of
from cdc_lib.merging import plan_of
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.window import Unit
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.open import open_store
from cdc_lib.verifying import Verifying
from spark_jobs.application import merge, run
from spark_jobs.batches import load_plan
from spark_jobs.lake_sums import SparkLakeSums
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.session import spark_session
from tests.support.chaos.customers import Customers
from tests.support.chaos.judge import compare_all
from tests.support.chaos.laws import Laws
from tests.support.chaos.places import PLACES, Killed
from tests.support.chaos.site import Site
from tests.support.chaos.steps import CHANCE_OF_A_KILL, Broken, Steps
from tests.support.chaos.takeovers import Takeovers
from tests.support.chaos.trials import Trials
from tests.support.chaos.zygote import Zygote
from tests.support.shop.compare import open_lake

ROUNDS = 10
KILLS_BETWEEN_COMPARISONS = 25
WITHOUT_KEY = ("page_views", "ledger")
REACH = 12
"""So many windows a rewind goes back at most: all of them are drained and merged again."""


class Chaos:
    """One source under fire.

    Args:
        site: running servers, which are killed now and then.
        config: the source.
        database: name of the shop, which is made here.
        folder: for what the steps leave beside the store.
        seed: of everything that is random.
        merge_kills: most merges that are killed; each needs a Spark of its own.
        trials: what else happens.
        say: takes a line for each event.
    """

    def __init__(
        self,
        site: Site,
        config: SourceConfig,
        database: str,
        folder: Path,
        seed: int,
        *,
        merge_kills: int,
        rows: int = 600,
        trials: Trials | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.site = site
        self.config = config
        self.folder = folder
        self.random = Random(seed)
        self.merge_kills = merge_kills
        self.trials = Trials.of(seed) if trials is None else trials
        self.say = say
        self.seconds: dict[str, float] = defaultdict(float)
        self.credentials = Credentials(site.primary.cdc_user, site.primary.cdc_password)
        self.store = open_store(config.store)
        self.cursors = ObjectCursorStore(self.store)
        self.laws = Laws(self.store, config.source)
        self._stack = ExitStack()
        self._rows = rows
        self._database = database
        self._spark: SparkSession | None = None
        self._old_plans: list[MergePlan] = []
        self._old_units: list[Unit] = []

    def __enter__(self) -> Self:
        zygote = self._stack.enter_context(Zygote())
        site, random = self.site, self.random
        self.steps = Steps(self.config, self.credentials, self.folder, random, zygote, site.wire, self.say)
        self.customers = Customers(site, self._database, random, self._rows, self.trials)
        self._stack.callback(self.customers.close)
        drain = partial(self.cursors.load, self.config.source, DRAIN)
        self.takeovers = Takeovers(site, self.steps, self.customers, drain, random, self.say)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def killed(self) -> Killed:
        """Where steps were killed."""
        return self.steps.killed

    @property
    def events(self) -> Counter[str]:
        """What happened, and how often."""
        return self.steps.events

    # --- the sequence

    def run(self, kills: int, minutes: float = 0) -> None:
        """Go on until so many steps were killed and the time is over, and all rows and columns were found equal."""
        compared, until = 0, time.monotonic() + minutes * 60
        for label in PLACES["plan"]:
            # The first plan makes both cursors, and passes these points in this order.
            self.steps.one("plan", label=label)
        while self.killed.total < kills or time.monotonic() < until:
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
            self._merge: 7,
            self._ack_lake: 7,
            self._drain_an_old_unit: 3,
            self._drain_twice_at_once: 2,
            self._merge_an_old_plan: 0.5,
            self._crash: 1,
            self._cut_or_silence: 4,
        }
        if self.trials.rewinds:
            weights |= {self._rewind: 4, self._undo: 1.5}
        if self.trials.quarantine:
            weights[self._release] = 3
        if self.trials.collections:
            weights |= {self._collect: 3, self._collect_beside_a_drain: 1}
        if self.trials.switches and self.site.can_switch:
            take = self.takeovers
            weights |= {take.hand_over: 0.8, take.fail_over: 0.5, take.lag: 3 if take.lagging else 1}
        if self.trials.anew:
            weights[self._anew] = 2
        if self.trials.upkeep:
            weights[self._maintain] = 1
        # What else moves a source's tables, a backfill say, goes here: a step in step.py, its places, a weight.
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

    def _plan(self) -> None:
        outcome = self.steps.one("plan", allowed=self._waiting())
        if outcome.error:
            self.customers.decide()  # as the message says

    def _ack_drain(self) -> None:
        self.steps.one("ack_drain", allowed={"BatchNotDurable"})

    def _plan_merge(self) -> None:
        self.steps.one("plan_merge")

    def _ack_lake(self) -> None:
        self.steps.one("ack_lake", allowed={"BatchNotDurable"})

    def _drain(self) -> None:
        units = self._units()
        if units:
            unit = self.random.choice(units)
            self._old_units.append(unit)
            self.steps.one("drain", unit=unit, allowed=self._elsewhere())

    def _drain_an_old_unit(self) -> None:
        """A task that was cleared, or a retry that comes too late."""
        if self._old_units:
            unit = self.random.choice(self._old_units)
            drain = self.cursors.load(self.config.source, DRAIN)
            assert drain is not None
            self.steps.one(
                "drain", unit=unit, allowed={"CursorMoved"} if unit.epoch != drain.epoch else self._elsewhere()
            )

    def _drain_twice_at_once(self) -> None:
        """A task that was given up and still runs, and its retry."""
        units = self._units()
        if units:
            self.steps.drain_beside(self.random.choice(units), "drain", self._elsewhere())

    def _merge(self) -> None:
        """Merge what the lake cursor has in flight; in the warm Spark, or in one that is killed."""
        plan = self._lake_plan()
        if plan is None:
            return
        self._old_plans.append(plan)
        killable = sum(n for label, n in self.killed.counts.items() if label.startswith("merge:")) < self.merge_kills
        if killable and self.random.random() < CHANCE_OF_A_KILL:
            self.steps.one("merge", plan=plan, sure=True)
        else:
            self._merge_well(plan)

    def _merge_an_old_plan(self) -> None:
        """A merge task that is cleared after everything went on; what was collected since cannot be merged again."""
        plans = [plan for plan in self._old_plans if all(self.store.get(key) for key in plan.batches)]
        if plans:
            self._merge_well(self.random.choice(plans))

    def _cut_or_silence(self) -> None:
        units = self._units()
        step = self.random.choice(("plan", "drain")) if units else "plan"
        unit = self.random.choice(units) if step == "drain" else None
        self.steps.over_bad_wire(step, unit, self._waiting() if step == "plan" else self._elsewhere())

    def _rewind(self) -> None:
        """Somebody moves the cursor back; forward would leave changes out."""
        drain = self.cursors.load(self.config.source, DRAIN)
        since = self.takeovers.first_epoch_here()
        windows = [one for one in self.laws.windows[-REACH:] if one.epoch >= since]
        places = [one.start for one in windows if drain and one.start <= drain.position]
        if places and not self.takeovers.pending:
            self.steps.one("rewind", wanted=str(self.random.choice(places)))

    def _undo(self) -> None:
        """Somebody takes a rewind back, too late perhaps."""
        if self.takeovers.pending:
            return
        self.steps.one("rewind", allowed={"ConfigError"})

    def _release(self) -> None:
        """Somebody releases the table that is set aside, mended or not."""
        drain = self.cursors.load(self.config.source, DRAIN)
        if drain is None or not drain.tables_aside:
            return
        if self.random.random() < 0.7:
            self.customers.mend()
        self.steps.one("release", wanted=drain.tables_aside[0].table, allowed=self._waiting() | self._elsewhere())

    def _anew(self) -> None:
        """Somebody doubts a table."""
        drain = self.cursors.load(self.config.source, DRAIN)
        aside = {one.table for one in drain.tables_aside} if drain else set()
        if drain is not None and (tables := [one for one in self.customers.tables() if one not in aside]):
            table = self.random.choice(tables)
            self.steps.one("anew", wanted=table, allowed=self._waiting() | self._elsewhere())

    def _maintain(self) -> None:
        """Look after some lake tables; in the warm Spark, or in one that is killed."""
        cut = last_cut(self.store, self.config.source)
        known = sorted({one.table for one in cut.tables}) if cut is not None else []
        if not known:
            return
        tables = self.random.sample(known, min(2, len(known)))
        killed = sum(n for label, n in self.killed.counts.items() if label.startswith("maintain:"))
        if killed < self.merge_kills / 3 and self.random.random() < CHANCE_OF_A_KILL:
            self.steps.one("maintain", wanted=",".join(tables), sure=True, allowed={"MergeConflict"})
        else:
            maintain(self._warm_spark(), self.config, self.store, lake_tables(self.config, cut, tables), lambda _: None)

    def _collect(self) -> None:
        """Remove what nobody needs, by a clock that is wrong."""
        self.steps.one("gc")

    def _collect_beside_a_drain(self) -> None:
        units = self._units()
        if units:
            self.steps.drain_beside(self.random.choice(units), "gc", self._elsewhere())

    def _waiting(self) -> set[str]:
        """Return what a step may end with that waits for prepared transactions."""
        return {"SourceUnavailable"} if self.customers.undecided else set()

    def _elsewhere(self) -> set[str]:
        """Return what a step may end with that belongs to the server that was left."""
        return {"ServerSwitched"} if self.takeovers.pending else set()

    def _merge_well(self, plan: MergePlan) -> None:
        """Merge in the warm Spark; a plan without changes needs none."""
        batches = load_plan(self.store, plan)
        if tables_of(batches):
            pipeline = Pipeline(self.config, self.credentials, self.store, self.cursors)
            origin = pipeline.reselector if self.config.reselect.is_on else None
            merge(self._warm_spark(), self.config, plan, self.store, self._noted, batches=batches, origin=origin)
        else:
            run(self.config, plan, self.store)

    def _noted(self, line: str) -> None:
        """Count the tables of which rows were read back."""
        if "re-selected" in line:
            self.events["merges of a table with rows that were read back"] += 1

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
        self.customers.mend()
        for _ in range(ROUNDS):
            self._round()
            if self._caught_up():
                break
        else:
            raise Broken(f"{ROUNDS} undisturbed rounds do not bring the lake to the end of the binlog")
        documents_seen = self.laws.check_documents()
        again = self._drain_again()
        assert self.config.lake.uri is not None
        assert self.config.lake.warehouse is not None
        catalog = open_lake(self.config.lake.uri, self.config.lake.warehouse)
        try:
            options, repeated = self.customers.options(), self.trials.rewinds
            found = compare_all(options, self._database, catalog, self._server_of, repeated=repeated)
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
        self._verify([one.table for one in found])

    def _server_of(self, epoch: int) -> int:
        return sum(one.kind == "switch" and one.epoch <= epoch for one in self._drain_cursor().switches)

    def _verify(self, tables: list[str]) -> None:
        """Let the product compare by itself; of tables without a key changes may stand twice after a rewind."""
        spark = self._warm_spark()
        lake = SparkLakeSums(spark, self.config.source)
        verifying = Verifying(self.config, self.credentials, self.store, self.cursors, lake)
        twice = WITHOUT_KEY if self.trials.rewinds else ()
        patterns = [f"{self._database}.{table}" for table in tables if table not in twice]
        report = verifying.run(patterns, self.config.verify, lambda _: None)
        wrong = [one for one in report.tables if one.drift or one.in_flight or one.skipped]
        if not report.clean or wrong:
            raise Broken("verify: " + "\n".join(map(str, wrong)))
        self.events["rows verified"] += sum(one.source_rows for one in report.tables)

    def _round(self) -> None:
        """What runs of the DAG do that merge when all is drained, and a person who releases what is set aside."""
        pipeline = Pipeline(self.config, self.credentials, self.store, self.cursors)
        while units := pipeline.plan(by="quiet"):
            for unit in units:
                pipeline.drain(unit)
            self.laws.check()
            pipeline.ack_drain(by="quiet")
            self.laws.check()
        while (plan := pipeline.plan_merge(by="quiet")) is not None:
            self._old_plans.append(plan)
            self._merge_well(plan)
            pipeline.ack_lake(by="quiet")
            self.laws.check()
        drain = self._drain_cursor()
        for one in drain.tables_aside if drain.position == pipeline.status().head else ():
            pipeline.release(one.table, by="quiet")

    def _drain_cursor(self) -> Cursor:
        drain = self.cursors.load(self.config.source, DRAIN)
        assert drain is not None
        return drain

    def _caught_up(self) -> bool:
        drain, lake = self._drain_cursor(), self.cursors.load(self.config.source, LAKE)
        assert lake is not None
        done = {task.id: task.chunks for task in lake.snapshots}
        merged = all(done.get(task.id, 0) == task.chunks for task in drain.snapshots)
        head = Pipeline(self.config, self.credentials, self.store, self.cursors).status().head
        there = lake.epoch == drain.epoch and drain.position == lake.position == head
        return there and merged and not drain.open_snapshots and not drain.tables_aside

    def _drain_again(self) -> int:
        """Drain a few windows of the past once more, elsewhere."""
        since = self.takeovers.first_epoch_here()
        stored = [window for window in self.laws.stored_windows() if window.epoch >= since]
        chosen = self.random.sample(stored, min(3, len(stored)))
        for number, window in enumerate(chosen):
            empty = self.folder / "again" / f"{self.killed.total}-{number}"
            self.laws.drains_to_the_same(window, self.config, self.credentials, self._drain_cursor(), empty)
        return len(chosen)
