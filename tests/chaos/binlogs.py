"""Faults of binlog files: one is truncated and restored, and the commit of a long statement rotates them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from tests.chaos.site import MARKS, Site
from tests.chaos.steps import Broken, Steps
from tests.chaos.workload import ChaosWorkload

TRIES = 300
"""Most drains, of which many are killed, until the truncated place is reached."""
SECONDS = 2
"""Duration of a statement; longer than the source's ``fallback_interval``."""
_OVERFLOWS = 8192
"""``max_binlog_size`` that the rows of the statement exceed."""


@dataclass
class Binlogs:
    """Makes the faults, and does the manual steps that follow.

    Args:
        site: the servers.
        steps: runs steps.
        workload: writes to the source.
        drain: returns the drain cursor.
        say: takes a line for each action.
    """

    site: Site
    steps: Steps
    workload: ChaosWorkload
    drain: Callable[[], Cursor | None]
    say: Callable[[str], None]

    def tear_a_file(self) -> None:
        """Truncate a closed file between two unread transactions: the source stops until the file is restored."""
        self.workload.decide()
        self.workload.work()
        end = self._head()
        self.workload.work()
        self.site.primary.execute(f"REPLACE INTO {MARKS} VALUES (1, {end.offset})")
        self.site.primary.execute("FLUSH BINARY LOGS")
        self.workload.work()
        self.workload.decide()
        self.site.catch_up_now()
        self.say(f"{end.file} is truncated at {end.offset}")
        primary = self.site.primary
        path = Path(primary.data_dir) / end.file
        primary._end(kill=False)
        whole = path.read_bytes()
        path.write_bytes(whole[: end.offset])
        primary.start()
        self.workload.follow()
        try:
            self._until_it_stops(end)
        finally:
            primary._end(kill=False)
            path.write_bytes(whole)
            primary.start()
            self.workload.follow()

    def _until_it_stops(self, end: Position) -> None:
        for _ in range(TRIES):
            self.steps.one("plan")
            cursor = self.drain()
            for unit in cursor.in_flight if cursor else ():
                outcome = self.steps.one("drain", unit=unit, allowed={"BinlogIncomplete"})
                if outcome.error == "BinlogIncomplete":
                    if f"file={end.file}, offset={end.offset}" not in outcome.message:
                        raise Broken(outcome.message)
                    return
            self.steps.one("ack_drain", allowed={"BatchNotDurable"})
            cursor = self.drain()
            if cursor is not None and cursor.position > end:
                raise Broken(f"{cursor.position} is after {end}, where {end.file} was truncated")
        raise Broken(f"no step failed at {end}, where {end.file} was truncated")

    def rotate_in_a_statement(self) -> None:
        """Commit other changes, and read some, while a statement runs whose commit rotates the file."""
        self.say("a long statement runs, and its commit rotates the file")
        server = self.site.primary
        usual = server.variable("max_binlog_size")
        server.execute(f"SET GLOBAL max_binlog_size = {_OVERFLOWS}")
        sql = (
            f"REPLACE INTO {MARKS} WITH RECURSIVE n AS (SELECT 10 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
            f"SELECT i, IF(i = 900, SLEEP({SECONDS}), UNIX_TIMESTAMP()) FROM n"
        )
        long = threading.Thread(target=server.execute, args=(sql,))
        long.start()
        try:
            while long.is_alive():
                self.workload.work()
                self.steps.one("plan", allowed={"SourceUnavailable"} if self.workload.undecided else set())
        finally:
            long.join()
            server.execute(f"SET GLOBAL max_binlog_size = {usual}")

    def _head(self) -> Position:
        server = self.site.primary
        statement = "SHOW MASTER STATUS" if server.flavor == "mariadb" else "SHOW BINARY LOG STATUS"
        (row,) = server.execute(statement)
        return Position(row[0], row[1])
