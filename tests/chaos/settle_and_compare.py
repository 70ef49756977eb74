"""Settler: every step ends well until the lake has everything; then all rows, columns and documents are compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cdc_lib.errors import MergeError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.pipeline import Pipeline
from demo.shop.compare import open_lake
from tests.chaos.failovers import Failovers
from tests.chaos.foreign_writers import ASKS_FOR_A_SNAPSHOT, ForeignWriters
from tests.chaos.judge import compare_all
from tests.chaos.lake_side import LakeSide
from tests.chaos.laws import Laws
from tests.chaos.steps import Broken
from tests.chaos.workload import ChaosWorkload

ROUNDS = 10
WITHOUT_KEY = ("page_views", "ledger")
A_SNAPSHOT_MENDS = ("it is unknown which names", "the primary key changed from", *ASKS_FOR_A_SNAPSHOT)
"""Tables that stop for these continue with a new snapshot, as they say themselves."""


@dataclass
class Settler:
    """Brings one source to rest and compares it.

    Args:
        pipeline: of the source.
        lake: where it is merged.
        laws: that hold meanwhile.
        workload: who are quiet now.
        failovers: that there were.
        random: chooses the windows that are drained again.
        folder: for what that leaves.
        repeated: whether a server's binlog may have been read more than once.
        say: takes a line about what was compared.
        foreign: who changed lake tables.
    """

    pipeline: Pipeline
    lake: LakeSide
    laws: Laws
    workload: ChaosWorkload
    failovers: Failovers
    random: Random
    folder: Path
    repeated: bool
    say: Callable[[str], None]
    foreign: ForeignWriters
    _again: int = 0

    def compare(self) -> None:
        """Let the lake have everything, and compare.

        Raises:
            Broken: something differs.
        """
        self.workload.mend()
        if self.failovers.repeated:
            self.round()
            names = [f"{self.workload.database}.{table}" for table in WITHOUT_KEY]
            self.pipeline.resnapshot(names, by="quiet", why="changes stand in it twice")
            self.failovers.repeated = False
        self._replace_changed()
        for _ in range(ROUNDS):
            self.round()
            if self._caught_up():
                break
        else:
            raise Broken(f"{ROUNDS} undisturbed rounds do not bring the lake to the end of the binlog")
        documents, again = self.laws.check_documents(), self._drain_again()
        tables, rows = self._compare()
        self.say(f"compared {rows} rows of {len(tables)} tables, {documents} documents, {again} windows drained again")
        self._verify(tables)

    def _replace_changed(self) -> None:
        """Take new snapshots of tables that strangers changed, as the page of operations says."""
        strangers = self.foreign
        if not strangers.changed and strangers.dropped.isdisjoint(self.workload.tables()):
            return
        self.round()
        aside = {one.table for one in self._drain.quarantined_tables}
        tables = [one for one in strangers.to_take_anew(self.workload.tables()) if one not in aside]
        if tables:
            self.pipeline.resnapshot(tables, by="quiet", why="a stranger changed them")

    def round(self) -> None:
        """What runs of the DAG do that merge when all is drained, and a person who releases what is quarantined."""
        pipeline = self.pipeline
        self.drain()
        while (plan := pipeline.plan_merge(by="quiet")) is not None:
            self.lake.plans.append(plan)
            try:
                self.lake.merge(plan)
            except MergeError as error:
                if not self.took_anew(str(error)):
                    raise
                break  # the next round reads the table
            pipeline.ack_lake(by="quiet")
            self.laws.check()
        drain = self._drain
        for one in drain.quarantined_tables if drain.position == pipeline.status().binlog_end else ():
            pipeline.resume_table(one.table, by="quiet")

    def drain(self) -> None:
        """Drain up to the end of the binlog, and merge nothing."""
        while units := self.pipeline.plan(by="quiet"):
            for unit in units:
                self.pipeline.drain(unit)
            self.laws.check()
            self.pipeline.ack_drain(by="quiet")
            self.laws.check()

    def took_anew(self, said: str) -> bool:
        """Take new snapshots, as a person does, of tables that stopped and ask for them."""
        database = self.workload.database
        there = {
            f"{database}.{name}" for (name,) in self.workload.site.primary.execute(f"SHOW TABLES FROM `{database}`")
        }
        if "that somebody else changed are quarantined" in said:
            self.lake.events["merge: tables of strangers that are quarantined"] += 1
            return True
        tables = sorted(there.intersection(re.findall(r"table=([\w.]+)", said)))
        if not tables or not any(one in said for one in A_SNAPSHOT_MENDS):
            return False
        self.lake.events["merge: tables that ask for a snapshot"] += 1
        self.pipeline.resnapshot(tables, by="quiet", why="they ask for it")
        return True

    def _caught_up(self) -> bool:
        drain, lake = self._drain, self._cursor(LAKE)
        done = {task.id: task.chunks for task in lake.snapshots}
        # One that was given up for a later one may have been merged at that moment.
        merged = all(done.get(task.id, 0) >= task.chunks for task in drain.snapshots)
        there = lake.epoch == drain.epoch and drain.position == lake.position == self.pipeline.status().binlog_end
        return there and merged and not drain.open_snapshots and not drain.quarantined_tables

    def _drain_again(self) -> int:
        """Drain a few windows of the past once more, elsewhere; those of other servers nobody can."""
        since = self.failovers.first_epoch_here()
        stored = [window for window in self.laws.stored_windows() if window.epoch >= since]
        chosen = self.random.sample(stored, min(3, len(stored)))
        for window in chosen:
            self._again += 1
            empty = self.folder / "again" / str(self._again)
            self.laws.drains_to_the_same(window, self.pipeline.config, self.pipeline.credentials, self._drain, empty)
        return len(chosen)

    def _compare(self) -> tuple[list[str], int]:
        """Compare by the tests' own means; returns the tables and how many rows they have."""
        lake, database = self.pipeline.config.lake, self.workload.database
        assert lake.uri is not None
        assert lake.warehouse is not None
        catalog = open_lake(lake.uri, lake.warehouse)
        try:
            options = self.workload.options()
            found = compare_all(options, database, catalog, self._server_of, repeated=self.repeated)
        finally:
            catalog.engine.dispose()
        if wrong := [table for table in found if table.differences]:
            raise Broken("\n".join(map(str, wrong)))
        rows = sum(table.source_rows for table in found)
        self.lake.events["rows compared"] += rows
        return [one.table for one in found], rows

    def _server_of(self, epoch: int) -> int:
        return sum(one.kind == "failover" and one.epoch <= epoch for one in self._drain.epoch_changes)

    def _verify(self, tables: list[str]) -> None:
        """Let the product compare; of tables without a key changes may stand twice after a rewind."""
        known = [table for table in tables if not (self.repeated and table in WITHOUT_KEY)]
        report = self.lake.verify([f"{self.workload.database}.{table}" for table in known])
        if wrong := [one for one in report.tables if one.drift or one.in_flight or one.skipped]:
            raise Broken("verify: " + "\n".join(map(str, wrong)))
        self.lake.events["rows verified"] += sum(one.source_rows for one in report.tables)

    @property
    def _drain(self) -> Cursor:
        return self._cursor(DRAIN)

    def _cursor(self, consumer: str) -> Cursor:
        cursor = self.pipeline.cursors.load(self.pipeline.config.source, consumer)
        assert cursor is not None
        return cursor
