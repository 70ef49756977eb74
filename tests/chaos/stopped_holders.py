"""Drains that are stopped while they hold a lock of a store in a folder; their successors need it."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from cdc_lib.model.window import DrainUnit
from tests.chaos.steps import Broken, Steps
from tests.chaos.stopping import STOPPED

HINT = re.compile(r"kill -(?:CONT|KILL) \d+")
SECONDS = 100


@dataclass
class StoppedHolders:
    """Stops drains, and does what the error of the successor says.

    Args:
        steps: runs steps.
        units: returns what can be drained.
        random: the random generator.
        say: takes a line for each action.
    """

    steps: Steps
    units: Callable[[], list[DrainUnit]]
    random: Random
    say: Callable[[str], None]

    def stop_a_lock_holder(self) -> None:
        """The successor must name the holder; either command of its hint lets the next one end well."""
        if not (units := self.units()):
            return
        unit = self.random.choice(units)
        holder, successor = self.steps.drains_of(unit, stops=True), self.steps.drains_of(unit, lock_patience=0.5)
        steps = self.steps
        steps.fork_server.begin(holder, successor)
        until = time.monotonic() + SECONDS
        while not (successor.result.exists() or steps.fork_server.have_ended()) and time.monotonic() < until:
            time.sleep(0.05)
        commands = HINT.findall(successor.result.read_text()) if successor.result.exists() else []
        if commands:
            command = self.random.choice(commands)
            self.say(f"a drain was stopped with its lock: {command}")
            subprocess.run(shlex.split(command), check=True)
            steps.events[f"stopped lock holders: {command.rpartition(' ')[0]}"] += 1
        first, second = steps.fork_server.finish(holder, successor)
        if STOPPED in first.passed and not (commands and second.error == "StoreUnavailable" and second.retryable):
            raise Broken(f"a drain was stopped with its lock, and its successor does not say so: {second}")
        if not first.done and not (commands and command.startswith("kill -KILL") and first.status == -signal.SIGKILL):
            raise Broken(f"the stopped drain ended with {first}")
        steps.one("drain", unit=unit)
