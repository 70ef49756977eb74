"""The standby takes over: in good order, after a crash, from after, and without what it never received."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random

from cdc_lib.model.cursor import Cursor
from tests.chaos.site import Site
from tests.chaos.steps import Broken, Steps
from tests.chaos.workload import ChaosWorkload

TRIES = 30


@dataclass
class Failovers:
    """Lets servers change their parts, and does what a person then has to do.

    Args:
        site: the servers.
        steps: starts steps.
        workload: who write, and follow to the new primary.
        drain: returns the drain cursor.
        random: decides.
        say: takes a line for each takeover.

    Attributes:
        lagging: whether the standby receives nothing.
        repeated: whether a server was left while it was read again after a rewind: nobody can tell then what changes of tables
            without a key stand twice, because the next server has them elsewhere.
    """

    site: Site
    steps: Steps
    workload: ChaosWorkload
    drain: Callable[[], Cursor | None]
    random: Random
    say: Callable[[str], None]
    lagging: bool = False
    repeated: bool = False

    @property
    def pending(self) -> bool:
        """Whether the drain cursor still stands on a former primary."""
        cursor = self.drain()
        return cursor is not None and str(cursor.identity.server_id) != self.site.primary.variable("server_id")

    def first_epoch_here(self) -> int:
        """Return since which epoch the drain stands on its server."""
        cursor = self.drain()
        return max((one.epoch for one in cursor.epoch_changes if one.kind == "failover"), default=1) if cursor else 1

    def hand_over(self) -> None:
        """In good order."""
        self._caught_up()
        self.say("the standby takes over in good order")
        self._moving(self.site.hand_over)

    def fail_over(self) -> None:
        """The primary dies in the middle of a transaction."""
        self._caught_up()
        self.workload.begin_in_vain()
        self.say("the primary dies, and the standby takes over")
        self._moving(self.site.fail_over)

    def lag(self) -> None:
        """The standby falls behind; or it catches up, is read from before it has, or takes over as it is."""
        if not self.lagging:
            self.site.lag()
            self.lagging = True
            return
        self.random.choices((self._caught_up, self._read_from_behind, self.lose), (2, 3, 2))[0]()

    def lose(self) -> None:
        """The primary dies with transactions that the standby never received."""
        self.say("the primary dies, and the standby takes over without its last transactions")
        if not self.lagging:
            self.site.lag()
        self.workload.begin_in_vain()
        self._note()
        self.site.lose(self.workload.follow)
        self.lagging = False
        self._accept_losses()

    def _read_from_behind(self) -> None:
        """The address leads to the standby before it has everything: what was read is not there yet, and then it is."""
        self.say("the address leads to a standby that lags")
        self._note()
        self.site.lead_to_standby()
        self.steps.one("plan", allowed={"ServerChanged", "SourceUnavailable"})
        self._caught_up()
        self._moving(self.site.hand_over)

    def _moving(self, move: Callable[[], None]) -> None:
        self._note()
        move()
        self.workload.follow()

    def _note(self) -> None:
        cursor = self.drain()
        self.repeated |= cursor is not None and _is_read_again(cursor)

    def _caught_up(self) -> None:
        if self.lagging:
            self.site.catch_up()
            self.lagging = False

    def _accept_losses(self) -> None:
        """What the documentation says after such a failover: continue, and read every table again."""
        if self.drain() is None:
            return
        self.workload.decide()
        config = self.steps.config
        accepting = config.failover.model_copy(update={"on_missing_transactions": "ignore"})
        self.steps.config = config.model_copy(update={"failover": accepting})
        try:
            self._until("plan", allowed={"PositionPurged"})
        finally:
            self.steps.config = config
        self._until("again")

    def _until(self, step: str, allowed: Collection[str] = ()) -> None:
        for _ in range(TRIES):
            outcome = self.steps.one(step, wanted=self._tables() if step == "again" else "", allowed=allowed)
            if outcome.error:  # the new server's binlog begins too late: continue after the gap
                (oldest, *_), *_ = self.site.primary.execute("SHOW BINARY LOGS")
                outcome = self.steps.one("rewind", wanted=f"{oldest}:4")
            if outcome.done:
                return
        raise Broken(f"{step} did not end well in {TRIES} tries")

    def _tables(self) -> str:
        """Return the tables that can be read again: those that are quarantined have their release."""
        cursor = self.drain()
        aside = {one.table for one in cursor.quarantined_tables} if cursor else set()
        return ",".join(table for table in self.workload.tables() if table not in aside)


def _is_read_again(cursor: Cursor) -> bool:
    lefts = []
    for switch in reversed(cursor.epoch_changes):
        if switch.kind == "failover":
            break
        lefts.append(switch.previous_end.position)
    return any(cursor.position < left for left in lefts)
