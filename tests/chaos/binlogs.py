"""What happens to binlog files: one loses its end and gets it back, and a long statement's commit rotates them."""

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

TRIES = 30
SECONDS = 2
"""How long a statement runs; more than the fallback of the source."""
_OVERFLOWS = 8192
"""Bytes of a binlog file that its rows overflow."""


@dataclass
class Binlogs:
    """Does it, and what a person then has to do.

    Args:
        site: the servers.
        steps: starts steps.
        workload: who write.
        drain: returns the drain cursor.
        say: takes a line for each deed.
    """

    site: Site
    steps: Steps
    workload: ChaosWorkload
    drain: Callable[[], Cursor | None]
    say: Callable[[str], None]

    def tear_a_file(self) -> None:
        """Cut a closed file off between two transactions that were not read: the source stops until it is whole again."""
        self.workload.decide()
        self.workload.work()
        end = self._head()
        self.workload.work()
        self.site.primary.execute(f"REPLACE INTO {MARKS} VALUES (1, {end.offset})")
        self.site.primary.execute("FLUSH BINARY LOGS")
        self.workload.work()
        self.workload.decide()
        self.site.catch_up_now()
        self.say(f"{end.file} loses what is after {end.offset}")
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
                    if f"file={end.file}, offset={end.offset}" not in outcome.said:
                        raise Broken(outcome.said)
                    return
            self.steps.one("ack_drain", allowed={"BatchNotDurable"})
            cursor = self.drain()
            if cursor is not None and cursor.position > end:
                raise Broken(f"{cursor.position} is after {end}, where {end.file} was cut off")
        raise Broken(f"nothing stopped at {end}, where {end.file} was cut off")

    def rotate_in_a_statement(self) -> None:
        """The shop's changes commit, and some are read, while a statement runs whose commit rotates the file."""
        self.say("a statement runs long, and its commit rotates the file")
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
