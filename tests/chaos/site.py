"""The servers of a source: a primary, a standby, and one address that points to the current primary."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.chaos.wire import Wire
from tests.harness.servers import SqlServer
from tests.harness.servers.replication import Pair, StandbyStopped, follow, server_of
from tests.harness.servers.skew import can_be_wrong

MARKS = "beside.seen"
"""A table that is not captured; it shows how far the standby is."""
_TRIES = 3
"""How often a standby that stopped is helped before a run ends."""

_SKEWS = (0, 300, -300, 40, -700)
"""Error of the clock of each server, in seconds, in the order of their start."""


class Site:
    """The servers, while its block runs.

    Args:
        kind: see :data:`tests.harness.servers.replication.KINDS`.
        alone: a running server without a standby; None to start two.
        apart: whether the clocks of the servers are minutes apart.

    Attributes:
        primary: the server that takes writes.
        wire: the proxy through which the source is read.
    """

    def __init__(self, kind: str, alone: SqlServer | None = None, *, apart: bool = False) -> None:
        self.kind = kind
        self._apart = apart and can_be_wrong()
        self._alone = alone
        self._stack = ExitStack()
        self._password = secrets.token_hex(12)
        self._number = 0
        self._standby: SqlServer | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.primary = self._alone or stack.enter_context(self._server())
            self.wire = stack.enter_context(Wire(self.primary))
            if self._alone is None:
                self.primary.execute("CREATE DATABASE beside")
                self.primary.execute(f"CREATE TABLE {MARKS} (id INT PRIMARY KEY, v INT)")
                self._stand_by(stack.enter_context(self._server()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def has_standby(self) -> bool:
        """Whether another server can take over."""
        return self._alone is None

    def hand_over(self) -> None:
        """Do a planned failover; the former primary becomes the standby."""
        pair = self._caught_up()
        pair.release()
        self._follow_back(pair)

    def fail_over(self) -> None:
        """Kill the primary and promote the standby, which has everything; the killed server becomes the standby."""
        pair = self._caught_up()
        pair.promote()
        pair.primary.start()
        self._follow_back(pair)

    def lag(self) -> None:
        """Stop the standby's replication."""
        self._pair.cut_off()

    def catch_up(self) -> None:
        """Start the standby's replication again."""
        self._pair.standby.execute(self._pair.standby.in_server_syntax("START REPLICA"))

    def catch_up_now(self) -> None:
        """Wait until the standby, if one exists, has everything."""
        if self._standby is not None:
            self._caught_up()

    def lead_to_standby(self) -> None:
        """Point the address to the standby while the primary still takes writes."""
        self.wire.lead_to(self._pair.standby)

    def lose(self, between: Callable[[], None]) -> None:
        """Kill the primary with transactions that only it has; promote the standby, and start a new one.

        Args:
            between: called when the new primary takes writes, before the new standby starts.
        """
        pair = self._pair
        pair.promote()
        self._standby, self.primary = None, pair.standby
        self.wire.lead_to(self.primary)
        pair.primary.stop()
        between()
        self._stand_by(self._stack.enter_context(self._server()))

    def copy_primary(self, to: Path) -> None:
        """Take a machine snapshot of the primary: its files, while it is stopped."""
        self.primary._end(kill=False)
        shutil.copytree(self.primary.data_dir, to)
        self.primary.start()

    def put_back(self, snapshot: Path) -> None:
        """Put the primary back to a machine snapshot; a standby, which has more, is replaced by a new one."""
        self.primary._end(kill=True)
        shutil.rmtree(self.primary.data_dir)
        shutil.copytree(snapshot, self.primary.data_dir)
        self.primary.start()
        if self._standby is not None:
            self._standby.stop()
            self._stand_by(self._stack.enter_context(self._server()))

    def _caught_up(self) -> Pair:
        """Return the servers when the standby has everything.

        A standby that does not follow any more is replaced by a new one, as its administrator would do; what it waits
        for is printed. A decision about an XA transaction that the primary's binlog does not have, as MariaDB may leave it
        after a crash, stops every standby: it is skipped.
        """
        for _ in range(_TRIES):
            try:
                self._pair.wait(MARKS)
                break
            except StandbyStopped as stopped:
                print(stopped, file=sys.stderr, flush=True)
                if "Unknown XID" in str(stopped):
                    for statement in ("STOP SLAVE", "SET GLOBAL sql_slave_skip_counter = 1", "START SLAVE"):
                        self._pair.standby.execute(statement)
                else:
                    self._pair.standby.stop()
                    self._stand_by(self._stack.enter_context(self._server()))
        else:
            self._pair.wait(MARKS)
        return self._pair

    @property
    def _pair(self) -> Pair:
        assert self._standby is not None
        return Pair(self.kind, self.primary, self._standby)

    def _follow_back(self, pair: Pair) -> None:
        self.primary = pair.standby
        self.wire.lead_to(self.primary)
        self._stand_by(pair.primary)

    def _stand_by(self, server: SqlServer) -> None:
        follow(self.kind, self.primary, server)
        self._standby = server

    def _server(self) -> SqlServer:
        self._number += 1
        skew = _SKEWS[self._number % len(_SKEWS)] if self._apart else 0
        return server_of(self.kind, self._number, self._password, skew=skew)
