"""Failovers to the standby: planned, after a crash, while it lags, and with lost transactions."""

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
    """Exchanges primary and standby, and does the manual steps that follow.

    Args:
        site: the servers.
        steps: runs steps.
        workload: writes to the source, and follows to the new primary.
        drain: returns the drain cursor.
        random: the random generator.
        say: takes a line for each failover.

    Attributes:
        lagging: whether the standby's replication is stopped.
        repeated: whether a failover came while a server was read again after a rewind: changes of tables without a key
            may then be in the lake twice, because they have other positions on the next server.
        losses: how often a server took over without the last transactions.
        reverted: the first epoch after the last machine snapshot that a server was put back to; 0 for none.
    """

    site: Site
    steps: Steps
    workload: ChaosWorkload
    drain: Callable[[], Cursor | None]
    random: Random
    say: Callable[[str], None]
    lagging: bool = False
    repeated: bool = False
    losses: int = 0
    reverted: int = 0

    @property
    def pending(self) -> bool:
        """Whether the drain cursor is still on a former primary."""
        cursor = self.drain()
        return cursor is not None and str(cursor.identity.server_id) != self.site.primary.variable("server_id")

    @property
    def refusals(self) -> set[str]:
        """The errors of a plan that another server answers: without a transaction or GTIDs of the cursor no place is found there."""
        cursor = self.drain()
        return {"PositionPurged"} if cursor and cursor.last is None and not cursor.gtids_known else set()

    def begin_again(self) -> None:
        """Follow the message of a plan without a place on the new server: its oldest file, and new snapshots of all tables."""
        self.workload.decide()  # a snapshot waits for prepared transactions
        self._until("plan", allowed={"PositionPurged"})
        self._until("resnapshot")

    def first_epoch_here(self) -> int:
        """Return the first epoch of the drain cursor's server, as far as it has what was read."""
        cursor = self.drain()
        changes = cursor.epoch_changes if cursor else ()
        return max(1, self.reverted, *(change.epoch for change in changes if change.kind == "failover"))

    def hand_over(self) -> None:
        """A planned failover."""
        self._caught_up()
        self.say("planned failover")
        self._fail_over_by(self.site.hand_over)

    def fail_over(self) -> None:
        """The primary crashes in the middle of a transaction."""
        self._caught_up()
        self.workload.begin_uncommitted()
        self.say("the primary crashes, and the standby takes over")
        self._fail_over_by(self.site.fail_over)

    def lag(self) -> None:
        """Let the standby lag; if it lags already, let it catch up, be read, or take over as it is."""
        if not self.lagging:
            self.site.lag()
            self.lagging = True
            return
        self.random.choices((self._caught_up, self._read_lagging_standby, self.lose), (2, 3, 2))[0]()

    def lose(self) -> None:
        """The primary crashes with transactions that the standby never received."""
        self.say("the primary crashes, and the standby takes over without its last transactions")
        self.losses += 1
        if not self.lagging:
            self.site.lag()
        self.workload.begin_uncommitted()
        self._note()
        self.site.lose(self.workload.follow)
        self.lagging = False
        self._accept_losses()

    def _read_lagging_standby(self) -> None:
        """Point the address to the standby before it has the position that was read; then it catches up."""
        self.say("the address points to a standby that lags")
        self._note()
        self.site.lead_to_standby()
        self.steps.one("plan", allowed={"ServerChanged", "TransactionsMissing", "SourceUnavailable", *self.refusals})
        self._caught_up()
        self._fail_over_by(self.site.hand_over)

    def _fail_over_by(self, move: Callable[[], None]) -> None:
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
        """Follow the documentation after lost transactions: ignore them, and request new snapshots of all tables."""
        if self.drain() is None:
            return
        config = self.steps.config
        accepting = config.failover.model_copy(update={"on_missing_transactions": "ignore"})
        self.steps.config = config.model_copy(update={"failover": accepting})
        try:
            self.begin_again()
        finally:
            self.steps.config = config

    def _until(self, step: str, allowed: Collection[str] = ()) -> None:
        for _ in range(TRIES):
            outcome = self.steps.one(step, argument=self._tables() if step == "resnapshot" else "", allowed=allowed)
            if outcome.error:  # the new server's binlog starts too late: continue after the gap
                (oldest, *_), *_ = self.site.primary.execute("SHOW BINARY LOGS")
                outcome = self.steps.one("rewind", argument=f"{oldest}:4")
            if outcome.done:
                return
        raise Broken(f"{step} did not succeed in {TRIES} tries")

    def _tables(self) -> str:
        """Return the tables that can be snapshotted again: all but the quarantined ones."""
        cursor = self.drain()
        quarantined = {entry.table for entry in cursor.quarantined_tables} if cursor else set()
        return ",".join(table for table in self.workload.tables() if table not in quarantined)


def _is_read_again(cursor: Cursor) -> bool:
    ends = []
    for epoch_change in reversed(cursor.epoch_changes):
        if epoch_change.kind == "failover":
            break
        ends.append(epoch_change.previous_end.position)
    return any(cursor.position < end for end in ends)
