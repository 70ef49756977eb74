"""The random sequence: what happens at the source, the steps and the wrong steps, kills, crashes and a bad network."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import BatchesGone, MergeConflict, MergeError, ReselectError
from cdc_lib.merging import plan_of
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge import MergePlan
from cdc_lib.model.window import Unit
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.open import open_store
from tests.support.chaos.backfills import any_backfill, to_text
from tests.support.chaos.customers import Customers
from tests.support.chaos.lake_side import LakeSide
from tests.support.chaos.laws import Laws
from tests.support.chaos.places import PLACES, Killed
from tests.support.chaos.quiet import Quiet
from tests.support.chaos.site import Site
from tests.support.chaos.steps import CHANCE_OF_A_KILL, Broken, Steps
from tests.support.chaos.takeovers import Takeovers
from tests.support.chaos.trials import Trials
from tests.support.chaos.zygote import Zygote

KILLS_BETWEEN_COMPARISONS = 25
GONE = frozenset({"BatchesGone"})
"""What ends a backfill whose batches were collected."""
GAVE_UP = frozenset({"MergeError", "IncompatibleSchema"})
INCOMPLETE = "the binlog does not tell all of some rows"
"""What a backfill says of rows that the merge read from the source, where images have not all columns."""
BACKFILLS_AT_REST = 2
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
        self._old_units: list[Unit] = []

    def __enter__(self) -> Self:
        zygote = self._stack.enter_context(Zygote())
        site, random = self.site, self.random
        self.steps = Steps(self.config, self.credentials, self.folder, random, zygote, site.wire, self.say)
        self.customers = Customers(site, self._database, random, self._rows, self.trials)
        self._stack.callback(self.customers.close)
        drain = partial(self.cursors.load, self.config.source, DRAIN)
        self.takeovers = Takeovers(site, self.steps, self.customers, drain, random, self.say)
        pipeline = Pipeline(self.config, self.credentials, self.store, self.cursors)
        self.lake = LakeSide(pipeline, self._stack, self.events)
        rewinds, say = self.trials.rewinds, self.say
        self.quiet = Quiet(
            pipeline, self.lake, self.laws, self.customers, self.takeovers, random, self.folder, rewinds, say
        )
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
                self.quiet.compare()
        for deed in self._weights():
            if not self.events[_name(deed)]:  # of what is rare, a short run has each thing once
                self._do(deed)
        self.quiet.compare()
        if self.trials.backfills:  # once the lake has something for sure
            for _ in range(BACKFILLS_AT_REST):
                self.customers.work()
                self.customers.mend()
                self.quiet.round()
                self._do(self._backfill)
            self.quiet.compare()

    def _something(self) -> None:
        weights = self._weights()
        self._do(self.random.choices(list(weights), list(weights.values()))[0])

    def _do(self, deed: Callable[[], Any]) -> None:
        began = time.monotonic()
        deed()
        self.laws.check()
        self.events[_name(deed)] += 1
        self.seconds[_name(deed)] += time.monotonic() - began

    def _weights(self) -> dict[Callable[[], Any], float]:
        """Return what can be done next, and how likely each is."""
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
            weights |= {take.hand_over: 0.8, take.fail_over: 0.5, take.lag: 3 if take.lagging else 1, take.lose: 0.2}
        if self.trials.anew:
            weights[self._anew] = 2
        if self.trials.upkeep:
            weights[self._maintain] = 1
        if self.trials.backfills:
            weights[self._backfill] = 4
        # What else moves a source's tables goes here: a step in step.py, its places, a weight.
        return weights

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
        self.lake.plans.append(plan)
        elsewhere = {"ReselectError"} if self.takeovers.pending else set()
        if self._kills_of("merge") < self.merge_kills and self.random.random() < CHANCE_OF_A_KILL:
            outcome = self.steps.one("merge", plan=plan, sure=True, allowed=elsewhere | GAVE_UP)
            if outcome.error in GAVE_UP and not self.quiet.took_anew(outcome.said):
                raise Broken(outcome.said)
            return
        try:
            self.lake.merge(plan)
        except ReselectError:
            if not elsewhere:
                raise
        except MergeError as error:
            if not self.quiet.took_anew(str(error)):
                raise

    def _merge_an_old_plan(self) -> None:
        """A merge task that is cleared after everything went on; what was collected since cannot be merged again."""
        plans = [plan for plan in self.lake.plans if all(self.store.get(key) for key in plan.batches)]
        if plans:
            with suppress(MergeConflict):  # it was planned anew since
                self.lake.merge(self.random.choice(plans))

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
        known = self.lake.tables()
        if not known:
            return
        tables = self.random.sample(known, min(2, len(known)))
        if self._kills_of("maintain") < self.merge_kills // 3 and self.random.random() < CHANCE_OF_A_KILL:
            self.steps.one("maintain", wanted=",".join(tables), sure=True, allowed={"MergeConflict"})
        else:
            self.lake.maintain(tables)

    def _backfill(self) -> None:
        """Merge batches of some time again; in the warm Spark, or in one that is killed."""
        if not (known := self.lake.tables()):
            return
        wanted = any_backfill(self.random, self.laws.stored_times(), known)
        if self._kills_of("backfill") < max(1, self.merge_kills // 3) and self.random.random() < CHANCE_OF_A_KILL:
            allowed = GONE | ({"MergeError"} if self.trials.images else set())
            outcome = self.steps.one("backfill", wanted=to_text(wanted), sure=True, allowed=allowed)
            if outcome.error == "MergeError" and INCOMPLETE not in outcome.said:
                raise Broken(outcome.said)
            return
        try:
            self.lake.backfill(wanted)
        except BatchesGone:
            self.events["backfill: BatchesGone"] += 1
        except MergeError as error:
            if not (self.trials.images and INCOMPLETE in str(error)):
                raise
            self.events["backfill: rows that only the source knew"] += 1

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

    # --- looking

    def _kills_of(self, step: str) -> int:
        return sum(count for label, count in self.killed.counts.items() if label.startswith(f"{step}:"))

    def _units(self) -> list[Unit]:
        drain = self.cursors.load(self.config.source, DRAIN)
        return [] if drain is None else [*drain.open_snapshots, *drain.in_flight]

    def _lake_plan(self) -> MergePlan | None:
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or not (lake.in_flight or lake.in_flight_snapshots):
            return None
        return plan_of(lake)


def _name(deed: Callable[[], Any]) -> str:
    return deed.__name__.strip("_").replace("_", " ")
