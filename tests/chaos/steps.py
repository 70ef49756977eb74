"""Runs the steps of a source in their own processes, kills most of them at a kill point, and checks their errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.window import DrainUnit, Window
from cdc_lib.store import documents
from tests.chaos.fork_server import ForkServer
from tests.chaos.job import Job, Outcome
from tests.chaos.kill_points import Killed
from tests.chaos.wire import Wire

SILENCE = 1.5
"""Read timeout of a step's connection to its server, in seconds."""
CHANCE_OF_A_KILL = 0.8
CHANCE_OF_ONE_CHUNK = 0.6


class Broken(AssertionError):
    """A law or the comparison found a fault."""


@dataclass
class Steps:
    """Runs steps.

    Args:
        config: the source.
        credentials: its log-in.
        folder: for files of the steps.
        random: decides which steps are killed, and where.
        fork_server: forks the processes.
        wire: the proxy in front of the primary.
        say: takes a line for each kill.

    Attributes:
        killed: the points at which steps were killed.
        events: counts of the errors that ended steps.
    """

    config: SourceConfig
    credentials: Credentials
    folder: Path
    random: Random
    fork_server: ForkServer
    wire: Wire
    say: Callable[[str], None]
    killed: Killed = field(default_factory=Killed)
    events: Counter[str] = field(default_factory=Counter)
    _jobs: int = 0

    def one(
        self,
        step: str,
        *,
        unit: DrainUnit | None = None,
        plan: MergePlan | None = None,
        argument: str = "",
        sure: bool = False,
        label: str = "",
        allowed: Collection[str] = (),
    ) -> Outcome:
        """Run a step; in most cases it is killed.

        Args:
            step: its name.
            unit: what to drain.
            plan: what to merge.
            argument: see :class:`tests.chaos.job.Job`.
            sure: whether it is always killed.
            label: where it is killed; chosen at random when empty.
            allowed: errors that may end it now.
        """
        job = self._job(
            step,
            unit=None if unit is None else documents.to_plain(unit),
            plan=None if plan is None else documents.to_plain(plan),
            argument=argument,
        )
        aimed = label or None
        if label:
            job = replace(job, label=label)
        elif sure or self.random.random() < CHANCE_OF_A_KILL:
            other = "of a chunk" if isinstance(unit, Window) else "of a window"
            aimed = self.killed.next(step, self.random, without=[other] if step == "drain" else [])
            job = self._deadly(job, aimed)
        (outcome,) = self.fork_server.run(job)
        if aimed is not None:
            self.killed.note(aimed, outcome.killed_at)
        if outcome.killed_at is not None:
            assert outcome.status == -9, outcome
            self.say(f"kill {self.killed.total}: {outcome.killed_at}{'' if job.group else ' (its children still run)'}")
        else:
            self._judge(step, outcome, allowed)
        return outcome

    def alive(self, step: str, argument: str, allowed: Collection[str] = ()) -> Outcome:
        """Run a step that is not killed."""
        (outcome,) = self.fork_server.run(self._job(step, argument=argument))
        self._judge(step, outcome, allowed)
        return outcome

    def drains_of(self, unit: DrainUnit, *, stops: bool = False, lock_patience: float = 60) -> Job:
        """Return a drain that is not killed, for the fork server."""
        job = self._job("drain", unit=documents.to_plain(unit))
        return replace(job, stops=stops, lock_patience=lock_patience)

    def drain_with(self, unit: DrainUnit, other: str, allowed: Collection[str] = ()) -> None:
        """Drain while another step runs: the same drain, or a collection."""
        plain = documents.to_plain(unit)
        jobs = [self._job("drain", unit=plain), self._job(other, unit=plain if other == "drain" else None)]
        if other == "gc":
            # A store has one clock, by which the collection spares new objects.
            jobs = [replace(job, clock=0) for job in jobs]
        # The server ends the older of two dumps that ask for the same window.
        may = {*allowed, "SourceUnavailable"} if other == "drain" else allowed
        for job, outcome in zip(jobs, self.fork_server.run(*jobs), strict=True):
            self._judge(job.step, outcome, may)

    def merge_with(
        self, plan: MergePlan, other: str, argument: str, allowed: Mapping[str, Collection[str]]
    ) -> tuple[Outcome, Outcome]:
        """Merge while a backfill or the maintenance writes the same lake tables, each in its own Spark; none is killed.

        Args:
            plan: what to merge.
            other: name of the other step.
            argument: of the other step.
            allowed: errors that may end each step now.
        """
        jobs = [self._job("merge", plan=documents.to_plain(plan)), self._job(other, argument=argument)]
        outcomes = self.fork_server.run(*jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            # A writer that loses every race fails with a conflict, and may be started again.
            self._judge(job.step, outcome, {"MergeConflict", *allowed.get(job.step, ())})
        first, second = outcomes
        return first, second

    def over_bad_wire(self, step: str, unit: DrainUnit | None, allowed: Collection[str] = ()) -> None:
        """Run a step whose connection breaks or stalls in the middle."""
        fault = self.random.choice(("cut", "cut", "half-open"))
        plain = None if unit is None else documents.to_plain(unit)
        self.wire.fail(fault, int(10 ** self.random.uniform(1, 4.7)))
        try:
            (outcome,) = self.fork_server.run(self._job(step, unit=plain, silence=SILENCE))
        finally:
            failed = self.wire.restore()
        self.events[f"{fault} connection" if failed else "connection that was not cut"] += 1
        self._judge(step, outcome, {*allowed, "SourceUnavailable"} if failed else allowed)

    def _deadly(self, job: Job, label: str) -> Job:
        spark = job.step in ("merge", "maintain", "backfill", "erase")
        job = replace(job, group=not spark or self.random.random() < 0.6)
        if label.endswith("at any moment"):
            most = 14.0 if spark else 0.5
            return replace(job, after=self.random.uniform(0.01, most))
        return replace(job, label=label, nth=self.random.choice((1, 1, 1, 2)))

    def _job(
        self,
        step: str,
        *,
        unit: dict[str, Any] | None = None,
        plan: dict[str, Any] | None = None,
        argument: str = "",
        silence: float = 30.0,
    ) -> Job:
        self._jobs += 1
        return Job(
            step=step,
            config=self.config.model_dump_json(),
            user=self.credentials.user,
            password=self.credentials.password,
            folder=str(self.folder / "jobs" / f"{self._jobs:05d}-{step}"),
            unit=unit,
            plan=plan,
            argument=argument,
            # What is erased is in no snapshot that a clock may take for a new one.
            clock=0 if step == "erase" else self.random.randrange(-100_000, 100_000),
            silence=silence,
            one_chunk=step == "drain" and self.random.random() < CHANCE_OF_ONE_CHUNK,
        )

    def _judge(self, step: str, outcome: Outcome, allowed: Collection[str]) -> None:
        """Raise if a step ended with an error that the current faults do not explain."""
        if not outcome.done and outcome.error not in allowed:
            raise Broken(f"{step} ended with {outcome.status} {outcome.error}: {outcome.message}")
        if outcome.error:
            self.events[f"{step}: {outcome.error}"] += 1
            if outcome.error == "SourceUnavailable" and not outcome.retryable:
                raise Broken(f"{outcome.error} is not retryable")
