"""Runs all steps without faults until the lake has caught up, then compares all rows, columns and documents."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cdc_lib import requests
from cdc_lib.errors import CorruptBatch, MergeError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import status_of
from demo.shop.compare import open_lake
from tests.chaos.failovers import Failovers
from tests.chaos.foreign_writers import ASKS_FOR_A_SNAPSHOT, ForeignWriters
from tests.chaos.judge import compare_all
from tests.chaos.lake_side import LakeSide
from tests.chaos.laws import Laws
from tests.chaos.lost_lake_files import LostLakeFiles
from tests.chaos.steps import Broken
from tests.chaos.workload import ChaosWorkload

ROUNDS = 10
WITHOUT_KEY = ("page_views", "ledger")
SNAPSHOT_HELPS = (
    "it is unknown which names",
    "the primary key changed from",
    "the table was altered at the source meanwhile",
    *ASKS_FOR_A_SNAPSHOT,
)
"""In errors of merges whose tables need a new snapshot."""

DAMAGED = (
    "the number of rows of the lake table does not add up",
    "let a new snapshot make the table again: cdc snapshot",
)
"""In errors of merges into tables whose rows a foreign writer doubled, or whose files are lost; at any other table it is a fault."""


@dataclass
class Settler:
    """Lets the lake of one source catch up, and compares it.

    Args:
        pipeline: of the source.
        lake: the lake of the source.
        laws: checked meanwhile.
        workload: writes nothing meanwhile.
        failovers: the failovers of the run.
        random: chooses the windows that are drained again.
        folder: for the batches of repeated drains.
        repeated: whether a server's binlog may have been read more than once.
        say: takes a line with the counts of each comparison.
        foreign: the foreign writers of the run.
        lost: the lost files of lake tables.
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
    lost: LostLakeFiles
    _again: int = 0

    def compare(self) -> None:
        """Let the lake catch up, and compare.

        Raises:
            Broken: something differs.
        """
        self.workload.repair()
        if self.failovers.repeated:
            self.round()
            names = [f"{self.workload.database}.{table}" for table in WITHOUT_KEY]
            requests.resnapshot(self.pipeline, names, by="settle", why="it may have changes twice")
            self.failovers.repeated = False
        self._replace_changed()
        for _ in range(ROUNDS):
            self.round()
            if self._caught_up():
                break
        else:
            raise Broken(f"the lake is not at the end of the binlog after {ROUNDS} rounds without faults")
        documents, again = self.laws.check_documents(), self._drain_again()
        tables, rows = self._compare()
        self.say(f"compared {rows} rows of {len(tables)} tables, {documents} documents, {again} windows drained again")
        # What a foreign writer did to the table of a dropped source table, no snapshot replaces.
        kept = [table for table in self.lake.tables() if table not in self.foreign.dropped]
        self.lake.read_by_key(kept, WITHOUT_KEY)
        self._verify(tables)

    def _replace_changed(self) -> None:
        """Request new snapshots of tables that foreign writers changed, as the operations page says."""
        foreign = self.foreign
        if not foreign.changed and foreign.dropped.isdisjoint(self.workload.tables()):
            return
        self.round()
        if self.lost.unsaid(self.workload.tables()):  # nothing was merged since
            self.workload.work()
            self.workload.repair()
            self.round()
            if unsaid := self.lost.unsaid(self.workload.tables()):
                raise Broken(f"files of the lake tables of {', '.join(unsaid)} are lost, and no finding says so")
        quarantined = {entry.table for entry in self._drain.quarantined_tables}
        tables = [table for table in foreign.tables_to_resnapshot(self.workload.tables()) if table not in quarantined]
        if tables:
            requests.resnapshot(self.pipeline, tables, by="settle", why="a foreign writer changed them")

    def round(self) -> None:
        """Drain, merge until nothing is left, and resume quarantined tables."""
        pipeline = self.pipeline
        self.drain()
        while (plan := pipeline.plan_merge(by="settle")) is not None:
            self.lake.plans.append(plan)
            try:
                self.lake.merge(plan)
            except (MergeError, CorruptBatch) as error:
                if not self.resnapshotted(str(error)):
                    raise
                break  # the next round takes the snapshot
            pipeline.ack_lake(by="settle")
            self.laws.check()
        drain = self._drain
        for entry in drain.quarantined_tables if drain.position == status_of(pipeline).binlog_end else ():
            requests.resume_table(pipeline, entry.table, by="settle")

    def drain(self) -> None:
        """Drain up to the end of the binlog, without merges."""
        while units := self.pipeline.plan(by="settle"):
            for unit in units:
                self.pipeline.drain(unit)
            self.laws.check()
            self.pipeline.ack_drain(by="settle")
            self.laws.check()

    def resnapshotted(self, message: str) -> bool:
        """Request new snapshots of the tables in a merge's error, if it asks for them; returns whether it does."""
        database = self.workload.database
        existing = {
            f"{database}.{name}" for (name,) in self.workload.site.primary.execute(f"SHOW TABLES FROM `{database}`")
        }
        if "are left out of the merge" in message:
            self.lake.events["merge: tables that are left out"] += 1
            return True
        named = set(re.findall(r"table=([\w.]+)", message))
        if named.isdisjoint(existing) and any(text in message for text in SNAPSHOT_HELPS):
            # The source has the table no more: the merge is planned again, with the DROP as soon as it is drained.
            self.lake.events["merge: changed tables that the source dropped"] += 1
            lake = self._cursor(LAKE)
            if lake is not None and lake.is_merging:
                requests.rollback(self.pipeline, by="settle", why="the source dropped the table")
            return True
        tables = sorted(existing.intersection(named))
        damaged = any(text in message for text in DAMAGED) and self.foreign.changed.issuperset(tables)
        if not tables or not (damaged or any(text in message for text in SNAPSHOT_HELPS)):
            return False
        self.lake.events["merge: tables that ask for a snapshot"] += 1
        if self.failovers.pending:
            return True  # the next merge asks again, when the source speaks to the new server
        quarantined = {entry.table for entry in self._drain.quarantined_tables}
        if tables := [table for table in tables if table not in quarantined]:  # a resumed table gets a snapshot anyway
            self.workload.decide()  # a snapshot waits for prepared transactions
            requests.resnapshot(self.pipeline, tables, by="settle", why="they ask for it")
        return True

    def _caught_up(self) -> bool:
        drain, lake = self._drain, self._cursor(LAKE)
        done = {task.id: task.chunks for task in lake.snapshots}
        # A snapshot that a later one replaced may have been merged before.
        merged = all(done.get(task.id, 0) >= task.chunks for task in drain.snapshots)
        at_end = lake.epoch == drain.epoch and drain.position == lake.position == status_of(self.pipeline).binlog_end
        return at_end and merged and not drain.open_snapshots and not drain.quarantined_tables

    def _drain_again(self) -> int:
        """Drain a few old windows of this server again, into another folder."""
        since = self.failovers.first_epoch_here()
        stored = [window for window in self.laws.stored_windows() if window.epoch >= since]
        chosen = self.random.sample(stored, min(3, len(stored)))
        for window in chosen:
            self._again += 1
            empty = self.folder / "again" / str(self._again)
            self.laws.drains_to_the_same(window, self.pipeline.config, self.pipeline.credentials, self._drain, empty)
        return len(chosen)

    def _compare(self) -> tuple[list[str], int]:
        """Compare with the tests' code; returns the tables and their number of rows."""
        lake, database = self.pipeline.config.lake, self.workload.database
        assert lake.uri is not None
        assert lake.warehouse is not None
        catalog = open_lake(lake.uri, lake.warehouse)
        try:
            options = self.workload.options()
            tables = compare_all(options, database, catalog, self._servers(), repeated=self.repeated)
        finally:
            catalog.engine.dispose()
        if wrong := [table for table in tables if table.differences]:
            raise Broken("\n".join(map(str, wrong)))
        rows = sum(table.source_rows for table in tables)
        self.lake.events["rows compared"] += rows
        return [table.table for table in tables], rows

    def _servers(self) -> Callable[[int], int]:
        """Return a function from an epoch to the number of its server. The cursor is loaded once: each row asks."""
        failovers = [change.epoch for change in self._drain.epoch_changes if change.kind == "failover"]
        return lambda epoch: sum(one <= epoch for one in failovers)

    def _verify(self, tables: list[str]) -> None:
        """Compare with ``cdc verify``; after a rewind, tables without a key may have changes twice and are skipped."""
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
