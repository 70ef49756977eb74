"""The random sequence of actions: changes at the source, steps, misused steps, kills, crashes and a bad network."""

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
from cdc_lib.errors import BatchesMissing, CorruptBatch, ForeignChange, MergeConflict, MergeError, ReselectError
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.backfill import BackfillRequest
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.window import DrainUnit
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.open import open_store
from tests.chaos.backfills import any_backfill, to_text
from tests.chaos.binlogs import Binlogs
from tests.chaos.erasures import Erasures
from tests.chaos.failovers import Failovers
from tests.chaos.foreign_properties import ForeignProperties
from tests.chaos.foreign_writers import ForeignWriters
from tests.chaos.fork_server import ForkServer
from tests.chaos.kill_points import KILL_POINTS, Killed
from tests.chaos.lake_side import LakeSide
from tests.chaos.laws import Laws
from tests.chaos.lost_lake_files import LostLakeFiles
from tests.chaos.reverted_server import RevertedServer
from tests.chaos.scenarios import Scenarios
from tests.chaos.second_catalog import SecondCatalogs
from tests.chaos.settle_and_compare import Settler
from tests.chaos.site import Site
from tests.chaos.steps import CHANCE_OF_A_KILL, Broken, Steps
from tests.chaos.stopped_holders import StoppedHolders
from tests.chaos.workload import ChaosWorkload
from tests.chaos.wrong_workers import WrongWorkers
from tests.harness.servers.skew import can_be_wrong

KILLS_BETWEEN_COMPARISONS = 25
COLLECTED = frozenset({"BatchesMissing"})
"""The error of a backfill whose batches were collected."""
GAVE_UP = frozenset({"MergeError", "IncompatibleSchema", "ForeignChange", "CorruptBatch", "MergeConflict"})
"""Errors of a merge whose message must say that tables are left out, or ask for snapshots."""
INCOMPLETE = "the binlog does not contain all columns of some rows"
"""In the error of a backfill, for rows with partial images that the merge re-selected from the source."""
FORMER_KEY = "A snapshot replaced the rows of the former key. Begin with it: "
"""In the error of a copy that would have rows of two primary keys; a command follows."""
COMMAND = re.compile(re.escape(FORMER_KEY) + r"cdc backfill shop (\S+) --since (\S+)(?: --until (\S+))? --into copy")
NO_SNAPSHOT = "No stored snapshot replaced the rows of the former key."
FINAL_BACKFILLS = 2
FINAL_FOREIGN_WRITES = 3
REACH = 12
"""Most windows that a rewind goes back: all of them are drained and merged again."""


class Chaos:
    """One source, whose steps are killed at random.

    Args:
        site: running servers, which are killed sometimes.
        config: the source.
        database: name of the shop, which is created here.
        folder: for files of the steps, outside the store.
        seed: of the random generator.
        merge_kills: most merges that are killed; each starts its own Spark.
        scenarios: the optional faults.
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
        self.properties = ForeignProperties(self.lake, self.foreign, random, say)
        self.lost = LostLakeFiles(self.foreign, random, say)
        self.settler = Settler(
            pipeline, self.lake, self.laws, self.workload, self.failovers, random, self.folder, rewinds, say,
            self.foreign, self.lost,
        )  # fmt: skip
        self.erasures = Erasures(self.steps, self.settler, self.workload.people, self.failovers, random, say)
        self.stopped = StoppedHolders(self.steps, self._units, random, say)
        self.wrong_workers = WrongWorkers(pipeline, self._lake_plan, self.folder, random, say)
        self.copies = SecondCatalogs(self.lake, self.foreign, self.workload, self.folder, random, say)
        self.reverted = RevertedServer(
            site, self.steps, self.workload, self.failovers, self.settler.drain, self.folder, say
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def killed(self) -> Killed:
        """The points at which steps were killed."""
        return self.steps.killed

    @property
    def events(self) -> Counter[str]:
        """Counts of actions and errors."""
        return self.steps.events

    # --- the sequence

    def run(self, kills: int, minutes: float = 0) -> None:
        """Run until enough steps were killed and the time is over; all rows and columns must be equal at the end."""
        compared, until = 0, time.monotonic() + minutes * 60
        for label in KILL_POINTS["plan"]:
            # The first plan makes both cursors, and passes these points in this order.
            self.steps.one("plan", label=label)
        while self.killed.total < kills or time.monotonic() < until:
            self._random_action()
            if self.killed.total - compared >= KILLS_BETWEEN_COMPARISONS:
                compared = self.killed.total
                self._compare()
        for action in self._weights():
            if not self.events[_name(action)]:  # a short run has each rare action once
                self._do(action)
        self._compare()
        if self.scenarios.foreign:  # the lake certainly has tables now
            for _ in range(FINAL_FOREIGN_WRITES):
                self.workload.work()
                self.workload.repair()
                self.settler.drain()
                self._do(self._lose_a_batch)
                self._do(self._foreign)
            self._compare()
        if self.scenarios.backfills:  # the lake certainly has tables now
            for _ in range(FINAL_BACKFILLS):
                self.workload.work()
                self.workload.repair()
                self.settler.round()
                self._do(self._backfill)
            self._compare()

    def _compare(self) -> None:
        self.settler.compare()
        self.erasures.check()

    def _random_action(self) -> None:
        weights = self._weights()
        self._do(self.random.choices(list(weights), list(weights.values()))[0])

    def _do(self, action: Callable[[], Any]) -> None:
        began = time.monotonic()
        action()
        self.laws.check()
        self.events["snapshots that were divided"] = sum(map(bool, self.laws.ranges.values()))
        self.events[_name(action)] += 1
        self.seconds[_name(action)] += time.monotonic() - began

    def _weights(self) -> dict[Callable[[], Any], float]:
        """Return the possible actions and their weights."""
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
        failovers, scenarios, has_standby = self.failovers, self.scenarios, self.site.has_standby
        extra: list[tuple[bool, dict[Callable[[], Any], float]]] = [
            (scenarios.rewinds, {self._rewind: 4, self._undo: 1.5}),
            (scenarios.quarantine, {self._resume: 3}),
            (scenarios.collections, {self._collect: 3, self._collect_during_a_drain: 1}),
            (
                scenarios.failovers and has_standby,
                {
                    failovers.hand_over: 0.8,
                    failovers.fail_over: 0.5,
                    failovers.lag: 3 if failovers.lagging else 1,
                    failovers.lose: 0.2,
                },
            ),
            (scenarios.resnapshots, {self._resnapshot: 2}),
            (scenarios.upkeep, {self._maintain: 1}),
            (scenarios.backfills, {self._backfill: 4}),
            (scenarios.backfills or scenarios.upkeep, {self._merge_with_another_writer: 1}),
            (scenarios.foreign, {self._foreign: 1, self._lose_a_batch: 1.5}),
            (scenarios.properties, {self.properties.set_a_property: 1.5}),
            (scenarios.lost, {self.lost.lose_lake_files: 1}),
            (scenarios.stopped and isinstance(self.store, LocalStore), {self._stop_a_lock_holder: 1}),
            (scenarios.ahead and can_be_wrong(), {self._merge_with_a_clock_ahead: 0.5}),
            (scenarios.copies, {self.copies.copy_the_source: 0.3}),
            (scenarios.reverts, {self.reverted.put_the_server_back: 0.4}),
            (scenarios.erasures, {self.erasures.erase: 1}),
            (scenarios.torn and has_standby, {self._tear_a_file: 0.5}),
            (scenarios.rotations and has_standby, {self._rotate_in_a_statement: 0.5}),
            # A new action needs a step in step.py, its kill points, and a weight here.
        ]
        return weights | {action: weight for enabled, actions in extra if enabled for action, weight in actions.items()}

    def _crash(self) -> None:
        self.say("the server is killed")
        self.workload.crash()

    # --- steps

    def _plan(self) -> None:
        nowhere = self.failovers.refusals if self.failovers.pending else set()
        outcome = self.steps.one("plan", allowed=self._waiting() | nowhere)
        if outcome.error in nowhere:
            self.failovers.begin_again()
        elif outcome.error:
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
        """A cleared task, or a late retry."""
        if self._old_units:
            unit = self.random.choice(self._old_units)
            drain = self.cursors.load(self.config.source, DRAIN)
            assert drain is not None
            self.steps.one(
                "drain", unit=unit, allowed={"CursorMoved"} if unit.epoch != drain.epoch else self._elsewhere()
            )

    def _drain_twice_at_once(self) -> None:
        """A task that Airflow gave up but that still runs, and its retry."""
        units = self._units()
        if units:
            self.steps.drain_with(self.random.choice(units), "drain", self._elsewhere())

    def _merge(self) -> None:
        """Merge what the lake cursor has in flight; in the running Spark, or in one that is killed."""
        plan = self._lake_plan()
        if plan is None:
            return
        self.lake.plans.append(plan)
        allowed = {"ReselectError"} if self.failovers.pending else set()
        allowed |= {"MergeConflict"} if self.foreign.changed or self.foreign.dropped else set()
        if self._kills_of("merge") < self.merge_kills and self.random.random() < CHANCE_OF_A_KILL:
            outcome = self.steps.one("merge", plan=plan, sure=True, allowed=allowed | GAVE_UP)
            if outcome.error in GAVE_UP - allowed and not self.settler.resnapshotted(outcome.message):
                raise Broken(outcome.message)
            return
        try:
            self.lake.merge(plan)
        except ReselectError:
            if not self.failovers.pending:
                raise
        except (MergeError, CorruptBatch) as error:
            if not self.settler.resnapshotted(str(error)):
                raise

    def _merge_an_old_plan(self) -> None:
        """A merge task that is cleared late; a plan whose batches were collected cannot be merged again."""
        plans = [plan for plan in self.lake.plans if self._is_stored(plan)]
        if plans:
            lost = (CorruptBatch,) if self.foreign.changed else ()
            with suppress(MergeConflict, ForeignChange, *lost):  # it was planned again
                self.lake.merge(self.random.choice(plans))

    def _is_stored(self, plan: MergePlan) -> bool:
        needed = {*plan.batches, *(opened.manifest for opened in plan.prepared)}
        return all(self.store.get(key) for key in needed)

    def _foreign(self) -> None:
        """A foreign writer changes a lake table."""
        self.foreign.change_a_table()

    def _lose_a_batch(self) -> None:
        """Delete a file of a batch that the lake has not merged."""
        if not self.failovers.pending and self.laws.windows:
            self.foreign.lose_a_batch(self.failovers.first_epoch_here())

    def _cut_or_silence(self) -> None:
        units = self._units()
        step = self.random.choice(("plan", "drain")) if units else "plan"
        unit = self.random.choice(units) if step == "drain" else None
        self.steps.over_bad_wire(step, unit, self._waiting() if step == "plan" else self._elsewhere())

    def _rewind(self) -> None:
        """Move the drain cursor back; moving it forward would skip changes."""
        drain = self.cursors.load(self.config.source, DRAIN)
        since = self.failovers.first_epoch_here()
        windows = [window for window in self.laws.windows[-REACH:] if window.epoch >= since]
        starts = [window.start for window in windows if drain and window.start <= drain.position]
        if starts and not self.failovers.pending:
            self.steps.one("rewind", argument=str(self.random.choice(starts)))

    def _undo(self) -> None:
        """Undo a rewind, perhaps too late."""
        drain = self.cursors.load(self.config.source, DRAIN)
        if self.failovers.pending or (drain is not None and drain.epoch == self.failovers.reverted):
            return
        self.steps.one("rewind", allowed={"ConfigError"})

    def _resume(self) -> None:
        """Resume the quarantined table, repaired or not."""
        drain = self.cursors.load(self.config.source, DRAIN)
        if drain is None or not drain.quarantined_tables:
            return
        if self.random.random() < 0.7:
            self.workload.repair()
        self.steps.one(
            "resume", argument=drain.quarantined_tables[0].table, allowed=self._waiting() | self._elsewhere()
        )

    def _resnapshot(self) -> None:
        """Request a new snapshot of a table."""
        drain = self.cursors.load(self.config.source, DRAIN)
        quarantined = {entry.table for entry in drain.quarantined_tables} if drain else set()
        if drain is not None and (tables := [table for table in self.workload.tables() if table not in quarantined]):
            table = self.random.choice(tables)
            self.steps.one("resnapshot", argument=table, allowed=self._waiting() | self._elsewhere())

    def _maintain(self) -> None:
        """Maintain some lake tables; in the running Spark, or in one that is killed."""
        known = self.foreign.sound()
        if not known:
            return
        tables = self.random.sample(known, min(2, len(known)))
        if self._kills_of("maintain") < self.merge_kills // 3 and self.random.random() < CHANCE_OF_A_KILL:
            self.steps.one("maintain", argument=",".join(tables), sure=True, allowed={"MergeConflict"})
        else:
            self.lake.maintain(tables)

    def _backfill(self) -> None:
        """Merge the batches of a period again; in the running Spark, or in one that is killed."""
        if not (known := self.lake.tables()) or self.foreign.changed:
            return
        request = any_backfill(self.random, self.laws.stored_times(), known)
        if self._kills_of("backfill") < max(1, self.merge_kills // 3) and self.random.random() < CHANCE_OF_A_KILL:
            allowed = self._refusals(request)
            outcome = self.steps.one("backfill", argument=to_text(request), sure=True, allowed=allowed)
            self._check_refusal(outcome.error, outcome.message)
            return
        try:
            self.lake.backfill(request)
        except BatchesMissing:
            self.events["backfill: BatchesMissing"] += 1
        except MergeError as error:
            if type(error).__name__ not in self._refusals(request):
                raise
            self._check_refusal(type(error).__name__, str(error))

    def _refusals(self, request: BackfillRequest) -> frozenset[str]:
        """Return the errors with which a backfill may refuse a request, without changing anything."""
        images = {"MergeError"} if self.scenarios.images else set()
        statements = {"IncompatibleSchema"} if self.scenarios.statements and request.into == "copy" else set()
        return frozenset(COLLECTED | images | statements)

    def _check_refusal(self, error: str, message: str) -> None:
        """A backfill may refuse rows with partial images, and copies that would have rows of two primary keys.

        The command that its message names must succeed.
        """
        if error == "MergeError" and INCOMPLETE not in message:
            raise Broken(message)
        if error == "IncompatibleSchema":
            commands = COMMAND.findall(message)
            if not commands and NO_SNAPSHOT not in message:
                raise Broken(message)
            for table, since, until in commands:
                with suppress(BatchesMissing):
                    self.lake.backfill(BackfillRequest(period_of(since, until or None), (table,), "copy"))
                self.events["backfill: from the snapshot on"] += 1
        if error in ("MergeError", "IncompatibleSchema"):
            self.events[f"backfill: {error}"] += 1

    def _merge_with_another_writer(self) -> None:
        """Merge while a backfill or the maintenance writes the same tables."""
        plan, known = self._lake_plan(), self.foreign.sound()
        if plan is None or not known:
            return
        self.lake.plans.append(plan)
        others = [
            name
            for name, enabled in (("backfill", self.scenarios.backfills), ("maintain", self.scenarios.upkeep))
            if enabled
        ]
        other = self.random.choice(others)
        argument, refusals = ",".join(known), COLLECTED
        if other == "backfill":
            request = any_backfill(self.random, self.laws.stored_times(), known)
            argument, refusals = to_text(request), self._refusals(request)
        allowed = {
            "merge": GAVE_UP | ({"ReselectError"} if self.failovers.pending else set()),
            "backfill": refusals,
        }
        merged, other_outcome = self.steps.merge_with(plan, other, argument, allowed)
        if merged.error in GAVE_UP and not self.settler.resnapshotted(merged.message):
            raise Broken(merged.message)
        if other == "backfill":
            self._check_refusal(other_outcome.error, other_outcome.message)
        self.events[f"merge with {other}"] += 1

    def _collect(self) -> None:
        """Collect batches that no cursor needs, with a wrong clock."""
        self.steps.one("gc")

    def _collect_during_a_drain(self) -> None:
        units = self._units()
        if units:
            self.steps.drain_with(self.random.choice(units), "gc", self._elsewhere())

    def _stop_a_lock_holder(self) -> None:
        if self.failovers.pending:
            return
        if not self._units():
            self.workload.work()
            self._plan()
        self.stopped.stop_a_lock_holder()

    def _merge_with_a_clock_ahead(self) -> None:
        if self._lake_plan() is None:
            self._plan_merge()
        self.wrong_workers.merge_with_a_clock_ahead()

    def _tear_a_file(self) -> None:
        """Not while the standby lags: it would skip the missing events."""
        if self.cursors.load(self.config.source, DRAIN) and not (self.failovers.pending or self.failovers.lagging):
            self.binlogs.tear_a_file()

    def _rotate_in_a_statement(self) -> None:
        if not self.failovers.pending:
            self.binlogs.rotate_in_a_statement()

    def _waiting(self) -> set[str]:
        """Return the errors of a step that waits for prepared transactions."""
        return {"SourceUnavailable"} if self.workload.undecided else set()

    def _elsewhere(self) -> set[str]:
        """Return the errors of a step whose position is on the former primary."""
        return {"ServerChanged"} if self.failovers.pending else set()

    # --- queries

    def _kills_of(self, step: str) -> int:
        return sum(count for label, count in self.killed.counts.items() if label.startswith(f"{step}:"))

    def _units(self) -> list[DrainUnit]:
        drain = self.cursors.load(self.config.source, DRAIN)
        return [] if drain is None else [*drain.snapshot_units, *drain.in_flight]

    def _lake_plan(self) -> MergePlan | None:
        lake = self.cursors.load(self.config.source, LAKE)
        if lake is None or not (lake.in_flight or lake.in_flight_snapshots):
            return None
        return plan_of(lake)


def _name(action: Callable[[], Any]) -> str:
    return action.__name__.strip("_").replace("_", " ")
