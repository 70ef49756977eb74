"""The random sequence: what happens at the source, the steps and the wrong steps, kills, crashes and a bad network."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

from cdc_lib.backfill.archive import period_of
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import BatchesMissing, ForeignChange, MergeConflict, MergeError, ReselectError
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.backfill import BackfillRequest
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.window import DrainUnit
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from tests.chaos.backfills import any_backfill, to_text
from tests.chaos.binlogs import Binlogs
from tests.chaos.failovers import Failovers
from tests.chaos.foreign_writers import ForeignWriters
from tests.chaos.fork_server import ForkServer
from tests.chaos.kill_points import PLACES, Killed
from tests.chaos.lake_side import LakeSide
from tests.chaos.laws import Laws
from tests.chaos.scenarios import Scenarios
from tests.chaos.settle_and_compare import Settler
from tests.chaos.site import Site
from tests.chaos.steps import CHANCE_OF_A_KILL, Broken, Steps
from tests.chaos.workload import ChaosWorkload

KILLS_BETWEEN_COMPARISONS = 25
GONE = frozenset({"BatchesMissing"})
"""What ends a backfill whose batches were collected."""
GAVE_UP = frozenset({"MergeError", "IncompatibleSchema", "ForeignChange"})
INCOMPLETE = "the binlog does not contain all columns of some rows"
"""What a backfill says of rows that the merge read from the source, where images have not all columns."""
FORMER_KEY = "A snapshot replaced the rows of the former key. Begin with it: "
"""What the refusal of a table beside says that would have rows of two keys; a command is after it."""
COMMAND = re.compile(re.escape(FORMER_KEY) + r"cdc backfill shop (\S+) --since (\S+)(?: --until (\S+))? --into copy")
NO_SNAPSHOT = "No stored snapshot replaced the rows of the former key."
BACKFILLS_AT_REST = 2
STRANGERS_AT_REST = 3
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
        scenarios: what else happens.
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
        scenarios: Scenarios | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.site = site
        self.config = config
        self.folder = folder
        self.random = Random(seed)
        self.merge_kills = merge_kills
        self.scenarios = Scenarios.of(seed) if scenarios is None else scenarios
        self.say = say
        self.seconds: dict[str, float] = defaultdict(float)
        self.credentials = Credentials(site.primary.cdc_user, site.primary.cdc_password)
        self.store = open_store(config.store)
        self.cursors = ObjectCursorStore(self.store)
        self.laws = Laws(self.store, config.source)
        self._stack = ExitStack()
        self._rows = rows
        self._database = database
        self._old_units: list[DrainUnit] = []

    def __enter__(self) -> Self:
        fork_server = self._stack.enter_context(ForkServer())
        site, random = self.site, self.random
        self.steps = Steps(self.config, self.credentials, self.folder, random, fork_server, site.wire, self.say)
        self.workload = ChaosWorkload(site, self._database, random, self._rows, self.scenarios)
        self._stack.callback(self.workload.close)
        drain = partial(self.cursors.load, self.config.source, DRAIN)
        self.failovers = Failovers(site, self.steps, self.workload, drain, random, self.say)
        self.binlogs = Binlogs(site, self.steps, self.workload, drain, self.say)
        pipeline = Pipeline(self.config, self.credentials, self.store, self.cursors)
        self.lake = LakeSide(pipeline, self._stack, self.events)
        rewinds, say = self.scenarios.rewinds, self.say
        self.foreign = ForeignWriters(pipeline, self.lake, random, say)
        self.settler = Settler(
            pipeline, self.lake, self.laws, self.workload, self.failovers, random, self.folder, rewinds, say,
            self.foreign,
        )  # fmt: skip
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
        """Continue until so many steps were killed and the time is over, and all rows and columns were found equal."""
        compared, until = 0, time.monotonic() + minutes * 60
        for label in PLACES["plan"]:
            # The first plan makes both cursors, and passes these points in this order.
            self.steps.one("plan", label=label)
        while self.killed.total < kills or time.monotonic() < until:
            self._something()
            if self.killed.total - compared >= KILLS_BETWEEN_COMPARISONS:
                compared = self.killed.total
                self.settler.compare()
        for deed in self._weights():
            if not self.events[_name(deed)]:  # of what is rare, a short run has each thing once
                self._do(deed)
        self.settler.compare()
        if self.scenarios.foreign:  # once the lake has something for sure
            for _ in range(STRANGERS_AT_REST):
                self.workload.work()
                self.workload.mend()
                self.settler.drain()
                self._do(self._lose_a_batch)
                self._do(self._foreign)
            self.settler.compare()
        if self.scenarios.backfills:  # once the lake has something for sure
            for _ in range(BACKFILLS_AT_REST):
                self.workload.work()
                self.workload.mend()
                self.settler.round()
                self._do(self._backfill)
            self.settler.compare()

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
            self.workload.work: 26,
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
        take, scenarios, moves = self.failovers, self.scenarios, self.site.can_switch
        extra: list[tuple[bool, dict[Callable[[], Any], float]]] = [
            (scenarios.rewinds, {self._rewind: 4, self._undo: 1.5}),
            (scenarios.quarantine, {self._release: 3}),
            (scenarios.collections, {self._collect: 3, self._collect_beside_a_drain: 1}),
            (
                scenarios.switches and moves,
                {take.hand_over: 0.8, take.fail_over: 0.5, take.lag: 3 if take.lagging else 1, take.lose: 0.2},
            ),
            (scenarios.anew, {self._anew: 2}),
            (scenarios.upkeep, {self._maintain: 1}),
            (scenarios.backfills, {self._backfill: 4}),
            (scenarios.backfills or scenarios.upkeep, {self._merge_beside_another_writer: 1}),
            (scenarios.foreign, {self._foreign: 1, self._lose_a_batch: 1.5}),
            (scenarios.torn and moves, {self._tear_a_file: 0.5}),
            (scenarios.rotations and moves, {self._rotate_in_a_statement: 0.5}),
            # What else moves a source's tables goes here: a step in step.py, its places, a weight.
        ]
        return weights | {deed: weight for wanted, deeds in extra if wanted for deed, weight in deeds.items()}

    def _crash(self) -> None:
        self.say("the server is killed")
        self.workload.crash()

    # --- steps

    def _plan(self) -> None:
        outcome = self.steps.one("plan", allowed=self._waiting())
        if outcome.error:
            self.workload.decide()  # as the message says

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
        elsewhere = {"ReselectError"} if self.failovers.pending else set()
        elsewhere |= {"MergeConflict"} if self.foreign.changed or self.foreign.dropped else set()
        if self._kills_of("merge") < self.merge_kills and self.random.random() < CHANCE_OF_A_KILL:
            outcome = self.steps.one("merge", plan=plan, sure=True, allowed=elsewhere | GAVE_UP)
            if outcome.error in GAVE_UP and not self.settler.took_anew(outcome.said):
                raise Broken(outcome.said)
            return
        try:
            self.lake.merge(plan)
        except ReselectError:
            if not self.failovers.pending:
                raise
        except MergeError as error:
            if not self.settler.took_anew(str(error)):
                raise

    def _merge_an_old_plan(self) -> None:
        """A merge task that is cleared after everything continued; what was collected since cannot be merged again."""
        plans = [plan for plan in self.lake.plans if all(self.store.get(key) for key in plan.batches)]
        if plans:
            with suppress(MergeConflict, ForeignChange):  # it was planned again since
                self.lake.merge(self.random.choice(plans))

    def _foreign(self) -> None:
        """Somebody else writes to the lake."""
        self.foreign.change_a_table()

    def _lose_a_batch(self) -> None:
        """Somebody deletes what the lake has not merged."""
        if not self.failovers.pending and self.laws.windows:
            self.foreign.lose_a_batch(self.failovers.first_epoch_here())

    def _cut_or_silence(self) -> None:
        units = self._units()
        step = self.random.choice(("plan", "drain")) if units else "plan"
        unit = self.random.choice(units) if step == "drain" else None
        self.steps.over_bad_wire(step, unit, self._waiting() if step == "plan" else self._elsewhere())

    def _rewind(self) -> None:
        """Somebody moves the cursor back; forward would leave changes out."""
        drain = self.cursors.load(self.config.source, DRAIN)
        since = self.failovers.first_epoch_here()
        windows = [one for one in self.laws.windows[-REACH:] if one.epoch >= since]
        places = [one.start for one in windows if drain and one.start <= drain.position]
        if places and not self.failovers.pending:
            self.steps.one("rewind", wanted=str(self.random.choice(places)))

    def _undo(self) -> None:
        """Somebody takes a rewind back, too late perhaps."""
        if self.failovers.pending:
            return
        self.steps.one("rewind", allowed={"ConfigError"})

    def _release(self) -> None:
        """Somebody releases the table that is quarantined, mended or not."""
        drain = self.cursors.load(self.config.source, DRAIN)
        if drain is None or not drain.quarantined_tables:
            return
        if self.random.random() < 0.7:
            self.workload.mend()
        self.steps.one("release", wanted=drain.quarantined_tables[0].table, allowed=self._waiting() | self._elsewhere())

    def _anew(self) -> None:
        """Somebody doubts a table."""
        drain = self.cursors.load(self.config.source, DRAIN)
        aside = {one.table for one in drain.quarantined_tables} if drain else set()
        if drain is not None and (tables := [one for one in self.workload.tables() if one not in aside]):
            table = self.random.choice(tables)
            self.steps.one("again", wanted=table, allowed=self._waiting() | self._elsewhere())

    def _maintain(self) -> None:
        """Look after some lake tables; in the warm Spark, or in one that is killed."""
        known = sorted(set(self.lake.tables()) - self.foreign.changed)
        if not known:
            return
        tables = self.random.sample(known, min(2, len(known)))
        if self._kills_of("maintain") < self.merge_kills // 3 and self.random.random() < CHANCE_OF_A_KILL:
            self.steps.one("maintain", wanted=",".join(tables), sure=True, allowed={"MergeConflict"})
        else:
            self.lake.maintain(tables)

    def _backfill(self) -> None:
        """Merge batches of some time again; in the warm Spark, or in one that is killed."""
        if not (known := self.lake.tables()) or self.foreign.changed:
            return
        wanted = any_backfill(self.random, self.laws.stored_times(), known)
        if self._kills_of("backfill") < max(1, self.merge_kills // 3) and self.random.random() < CHANCE_OF_A_KILL:
            allowed = self._refusals(wanted)
            outcome = self.steps.one("backfill", wanted=to_text(wanted), sure=True, allowed=allowed)
            self._check_refusal(outcome.error, outcome.said)
            return
        try:
            self.lake.backfill(wanted)
        except BatchesMissing:
            self.events["backfill: BatchesMissing"] += 1
        except MergeError as error:
            if type(error).__name__ not in self._refusals(wanted):
                raise
            self._check_refusal(type(error).__name__, str(error))

    def _refusals(self, wanted: BackfillRequest) -> frozenset[str]:
        """Return the errors by which a backfill may refuse what it is asked for, and change nothing."""
        images = {"MergeError"} if self.scenarios.images else set()
        statements = {"IncompatibleSchema"} if self.scenarios.statements and wanted.into == "copy" else set()
        return frozenset(GONE | images | statements)

    def _check_refusal(self, error: str, said: str) -> None:
        """A backfill refuses rows of which the binlog does not tell all, and tables beside that would have rows of two keys.

        What it says then to ask for is not refused.
        """
        if error == "MergeError" and INCOMPLETE not in said:
            raise Broken(said)
        if error == "IncompatibleSchema":
            commands = COMMAND.findall(said)
            if not commands and NO_SNAPSHOT not in said:
                raise Broken(said)
            for table, since, until in commands:
                with suppress(BatchesMissing):
                    self.lake.backfill(BackfillRequest(period_of(since, until or None), (table,), "copy"))
                self.events["backfill: from the snapshot on"] += 1
        if error in ("MergeError", "IncompatibleSchema"):
            self.events[f"backfill: {error}"] += 1

    def _merge_beside_another_writer(self) -> None:
        """Merge while a backfill, or the upkeep, writes the same tables."""
        plan, known = self._lake_plan(), self.lake.tables()
        if plan is None or not known:
            return
        self.lake.plans.append(plan)
        others = [
            name for name, on in (("backfill", self.scenarios.backfills), ("maintain", self.scenarios.upkeep)) if on
        ]
        other = self.random.choice(others)
        wanted, refusals = ",".join(known), GONE
        if other == "backfill":
            drawn = any_backfill(self.random, self.laws.stored_times(), known)
            wanted, refusals = to_text(drawn), self._refusals(drawn)
        allowed = {
            "merge": GAVE_UP | ({"ReselectError"} if self.failovers.pending else set()),
            "backfill": refusals,
        }
        merged, beside = self.steps.merge_beside(plan, other, wanted, allowed)
        if merged.error in GAVE_UP and not self.settler.took_anew(merged.said):
            raise Broken(merged.said)
        if other == "backfill":
            self._check_refusal(beside.error, beside.said)
        self.events[f"merge beside {other}"] += 1

    def _collect(self) -> None:
        """Remove what nobody needs, by a clock that is wrong."""
        self.steps.one("gc")

    def _collect_beside_a_drain(self) -> None:
        units = self._units()
        if units:
            self.steps.drain_beside(self.random.choice(units), "gc", self._elsewhere())

    def _tear_a_file(self) -> None:
        """A standby that lags would pass over what is missing."""
        if self.cursors.load(self.config.source, DRAIN) and not (self.failovers.pending or self.failovers.lagging):
            self.binlogs.tear_a_file()

    def _rotate_in_a_statement(self) -> None:
        if not self.failovers.pending:
            self.binlogs.rotate_in_a_statement()

    def _waiting(self) -> set[str]:
        """Return what a step may end with that waits for prepared transactions."""
        return {"SourceUnavailable"} if self.workload.undecided else set()

    def _elsewhere(self) -> set[str]:
        """Return what a step may end with that belongs to the server that was left."""
        return {"ServerChanged"} if self.failovers.pending else set()

    # --- looking

    def _kills_of(self, step: str) -> int:
        return sum(count for label, count in self.killed.counts.items() if label.startswith(f"{step}:"))

    def _units(self) -> list[DrainUnit]:
        drain = self.cursors.load(self.config.source, DRAIN)
        return [] if drain is None else [*drain.open_snapshots, *drain.in_flight]

    def _lake_plan(self) -> MergePlan | None:
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or not (lake.in_flight or lake.in_flight_snapshots):
            return None
        return plan_of(lake)


def _name(deed: Callable[[], Any]) -> str:
    return deed.__name__.strip("_").replace("_", " ")
