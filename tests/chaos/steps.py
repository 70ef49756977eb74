"""Steps of a source in processes of their own: most are killed at a labelled point, and what ends one is judged."""

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
"""Seconds after which a step gives up on a server that says nothing."""
CHANCE_OF_A_KILL = 0.8


class Broken(AssertionError):
    """A law or the comparison found a fault."""


@dataclass
class Steps:
    """Starts steps.

    Args:
        config: the source.
        credentials: its log-in.
        folder: for what the steps leave.
        random: decides who is killed, and where.
        fork_server: what forks the processes.
        wire: the network that breaks, before whichever server is the primary.
        say: takes a line for each kill.

    Attributes:
        killed: where steps were killed.
        events: how often which error ended a step.
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
        wanted: str = "",
        sure: bool = False,
        label: str = "",
        allowed: Collection[str] = (),
    ) -> Outcome:
        """Do a step; most often it is killed.

        Args:
            step: its name.
            unit: what to drain.
            plan: what to merge.
            wanted: where to rewind to, or what to release.
            sure: whether it is killed for sure.
            label: where it is killed; chosen when empty.
            allowed: errors that may end it at this moment.
        """
        job = self._job(
            step,
            unit=None if unit is None else documents.to_plain(unit),
            plan=None if plan is None else documents.to_plain(plan),
            wanted=wanted,
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
            self.say(f"kill {self.killed.total}: {outcome.killed_at}{'' if job.group else ' (its children live on)'}")
        else:
            self._judge(step, outcome, allowed)
        return outcome

    def drain_beside(self, unit: DrainUnit, other: str, allowed: Collection[str] = ()) -> None:
        """Drain while another step runs: the same drain, or a collection."""
        plain = documents.to_plain(unit)
        jobs = [self._job("drain", unit=plain), self._job(other, unit=plain if other == "drain" else None)]
        if other == "gc":
            jobs = [replace(job, clock=0) for job in jobs]  # a store has one clock, by which what is young stays
        # The server ends the older of two dumps that ask for the same window.
        may = {*allowed, "SourceUnavailable"} if other == "drain" else allowed
        for job, outcome in zip(jobs, self.fork_server.run(*jobs), strict=True):
            self._judge(job.step, outcome, may)

    def merge_beside(
        self, plan: MergePlan, other: str, wanted: str, allowed: Mapping[str, Collection[str]]
    ) -> tuple[Outcome, Outcome]:
        """Merge while a backfill or the upkeep works on the same lake tables, each in a Spark of its own; nobody is killed.

        Args:
            plan: what to merge.
            other: name of the other step.
            wanted: what it is asked for.
            allowed: errors that may end each step at this moment.
        """
        jobs = [self._job("merge", plan=documents.to_plain(plan)), self._job(other, wanted=wanted)]
        outcomes = self.fork_server.run(*jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            # Whoever comes second every time says so, and may be started again.
            self._judge(job.step, outcome, {"MergeConflict", *allowed.get(job.step, ())})
        first, second = outcomes
        return first, second

    def over_bad_wire(self, step: str, unit: DrainUnit | None, allowed: Collection[str] = ()) -> None:
        """Do a step whose connection breaks in the middle, or says no more."""
        fault = self.random.choice(("cut", "cut", "half-open"))
        plain = None if unit is None else documents.to_plain(unit)
        self.wire.fail(fault, int(10 ** self.random.uniform(1, 4.7)))
        try:
            (outcome,) = self.fork_server.run(self._job(step, unit=plain, silence=SILENCE))
        finally:
            failed = self.wire.mend()
        self.events[f"{fault} connection" if failed else "connection that was not cut"] += 1
        self._judge(step, outcome, {*allowed, "SourceUnavailable"} if failed else allowed)

    def _deadly(self, job: Job, label: str) -> Job:
        spark = job.step in ("merge", "maintain", "backfill")
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
        wanted: str = "",
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
            wanted=wanted,
            clock=self.random.randrange(-100_000, 100_000),
            silence=silence,
        )

    def _judge(self, step: str, outcome: Outcome, allowed: Collection[str]) -> None:
        """Only what the faults of this moment explain may have ended a step."""
        if not outcome.done and outcome.error not in allowed:
            raise Broken(f"{step} ended with {outcome.status} {outcome.error}: {outcome.said}")
        if outcome.error:
            self.events[f"{step}: {outcome.error}"] += 1
            if outcome.error == "SourceUnavailable" and not outcome.retryable:
                raise Broken(f"{outcome.error} cannot be tried again")
