"""A server that is put back to a machine snapshot: same UUID, same binlog files, but other transactions in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.failovers import TRIES, Failovers
from tests.chaos.site import Site
from tests.chaos.steps import Broken, Steps
from tests.chaos.workload import ChaosWorkload

HINT = re.compile(r"cdc cursor rewind \S+ --position (\S+), then cdc snapshot \S+ '(\*\.\*)'")


@dataclass
class RevertedServer:
    """Puts the primary back, and does what the error says.

    Args:
        site: the servers.
        steps: runs steps.
        workload: writes to the source.
        failovers: gives the drain cursor, and remembers from which epoch on the server has what was read.
        read: drains up to the end of the binlog.
        folder: for the machine snapshot.
        say: takes a line for each action.
    """

    site: Site
    steps: Steps
    workload: ChaosWorkload
    failovers: Failovers
    read: Callable[[], None]
    folder: Path
    say: Callable[[str], None]

    def put_the_server_back(self) -> None:
        """Read transactions that only the past has which is lost: the next plan must notice, and its hint must lead out."""
        failovers = self.failovers
        if failovers.pending or failovers.lagging or failovers.drain() is None:
            return
        self.workload.repair()
        snapshot = self.folder / "machine-snapshot"
        self.site.copy_primary(snapshot)
        created = self._begin(None)
        self.read()
        self.say(f"the server is put back to a machine snapshot, and the drain was at {self._at}")
        self.site.put_back(snapshot)
        self._begin(created)
        self._noticed()
        shutil.rmtree(snapshot)

    def _begin(self, created: int | None) -> int:
        """Begin a past, with a file whose header has the time of the other past's; returns that time."""
        server = self.site.primary
        created = created or server.execute("SELECT UNIX_TIMESTAMP()")[0][0]
        with server.connect() as session, session.cursor() as cursor:
            cursor.execute(f"SET timestamp = {created}")
            cursor.execute("FLUSH BINARY LOGS")
        self.workload.follow()
        self.workload.work()
        self.workload.repair()
        return created

    def _noticed(self) -> None:
        at = self._at
        for _ in range(TRIES):
            outcome = self.steps.one("plan", allowed={"PositionNotFound"})
            if outcome.error or outcome.done:
                break
        found = HINT.search(outcome.message)
        if not outcome.error or found is None or self._at != at:
            raise Broken(f"the server was put back, the drain was at {at} and is at {self._at}: {outcome}")
        position, tables = found.groups()
        self._until("rewind", position)
        cursor = self.failovers.drain()
        assert cursor is not None
        self.failovers.reverted = cursor.epoch
        self._until("resnapshot", tables)

    def _until(self, step: str, argument: str) -> None:
        for _ in range(TRIES):
            if self.steps.one(step, argument=argument).done:
                return
        raise Broken(f"{step} did not succeed in {TRIES} tries")

    @property
    def _at(self) -> str:
        cursor = self.failovers.drain()
        return f"{cursor.epoch} {cursor.position} {len(cursor.in_flight)}" if cursor else ""
