"""Foreign writers: they change lake tables, and delete batches after their ack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from py4j.protocol import Py4JJavaError

from cdc_lib.backfill.refill import BatchRefill
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.pipeline import Pipeline
from cdc_lib.plan.gaps import gap_of
from cdc_lib.store import documents, layout
from cdc_lib.store.windows import stored_windows
from spark_jobs.errors import lacks_metadata
from tests.chaos.lake_side import LakeSide
from tests.chaos.settings import MODES
from tests.chaos.steps import Broken

ASKS_FOR_A_SNAPSHOT = ("does not exist any more", "lacks what was merged")
"""In errors of merges into changed lake tables, where a new snapshot is the way out."""


@dataclass
class ForeignWriters:
    """Changes the lake tables and batches of one source.

    Args:
        pipeline: of the source.
        lake: its lake.
        random: the random generator.
        say: takes a line for each action.

    Attributes:
        changed: source tables whose lake tables were changed.
        dropped: changed tables that the source did not have at the last new snapshots; they may come back.
    """

    pipeline: Pipeline
    lake: LakeSide
    random: Random
    say: Callable[[str], None]
    changed: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)

    def change_a_table(self) -> None:
        """Add, delete or rewrite rows of a lake table, roll it back or drop it."""
        table = self.choose([table for table in self.unchanged() if table.partition(".")[2] not in MODES])
        if not table:
            return
        actions = (self._compact, self._delete, self._double, self._roll_back, self._drop)
        action = self.random.choice(actions)
        self.say(f"a foreign writer at {table}: {action.__name__}")
        action(self.lake.name(table))
        self.lake.events[f"foreign writers: {action.__name__}"] += 1
        if action != self._compact:
            self.changed.add(table)

    def sound(self) -> list[str]:
        """Return the tables that the lake has, as merges left them."""
        return sorted(set(self.lake.tables()) - self.changed - self.dropped)

    def unchanged(self) -> list[str]:
        """Return those of them that are not quarantined."""
        drain = self.pipeline.cursors.load(self.pipeline.config.source, DRAIN)
        quarantined = {entry.table for entry in drain.quarantine if entry.is_open} if drain else set()
        return [table for table in self.sound() if table not in quarantined]

    def choose(self, tables: Sequence[str]) -> str:
        """Return one of the tables; empty if there is none, or its lake table was dropped with it, or was lost before that."""
        table = self.random.choice(tables) if tables else ""
        try:
            return table if table and self.lake.spark().catalog.tableExists(self.lake.name(table)) else ""
        except Py4JJavaError as error:
            if not lacks_metadata(error):
                raise
            return ""

    def lose_a_batch(self, since: int) -> None:
        """Delete a manifest or a file that the lake needs, and refill it.

        Args:
            since: the first epoch whose binlog the server has.
        """
        pipeline, source = self.pipeline, self.pipeline.config.source
        drain, lake = (pipeline.cursors.load(source, consumer) for consumer in (DRAIN, LAKE))
        if drain is None or lake is None or lake.epoch < since or (end := drain.end_of_epoch(lake.epoch)) is None:
            return
        start, stop = Point.at(lake.epoch, lake.position), Point.at(lake.epoch, end)
        waiting = [w for w in stored_windows(pipeline.store, source, lake.epoch) if start <= w.start < w.stop <= stop]
        if not waiting:
            return
        window = self.random.choice(waiting)
        manifest = self._manifest(window.key)
        files = [layout.beside(window.key, file.path) for file in manifest.files]
        lost = self.random.choice([window.key, *files])
        self.say(f"a foreign writer deletes {lost}")
        pipeline.store.delete([lost])
        if lost == window.key and gap_of(pipeline.store, drain, lake) is None:
            raise Broken(f"{lost} is missing, but is not reported")
        refilling = BatchRefill(pipeline)
        if refilling.refill(report=lambda _: None) != 1 or refilling.missing():
            raise Broken(f"{lost} is not refilled")
        if self._manifest(window.key).files != manifest.files:
            raise Broken(f"{window.key} came back with other files")
        self.lake.events["foreign writers: a batch was lost"] += 1

    def _manifest(self, key: str) -> Manifest:
        stored = self.pipeline.store.get(key)
        if stored is None:
            raise Broken(f"{key} does not exist")
        return documents.load(Manifest, stored.data, key)

    def tables_to_resnapshot(self, existing: Sequence[str]) -> list[str]:
        """Return the changed tables that the source still has, and forget them."""
        tables = sorted((self.changed | self.dropped).intersection(existing))
        self.dropped = (self.changed | self.dropped).difference(existing)
        self.changed.clear()
        return tables

    def _compact(self, name: str) -> None:
        self._call("rewrite_data_files", name, "options => map('rewrite-all', 'true')")

    def _delete(self, name: str) -> None:
        self.lake.spark().sql(f"DELETE FROM {name} WHERE _offset % 3 = 0")

    def _double(self, name: str) -> None:
        self.lake.spark().sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 5")

    def _roll_back(self, name: str) -> None:
        spark = self.lake.spark()
        rows = spark.sql(
            f"SELECT s.snapshot_id, s.summary FROM {name}.snapshots s JOIN {name}.history h ON s.snapshot_id = h.snapshot_id"
            " WHERE h.is_current_ancestor"
        ).collect()
        marked = [row.snapshot_id for row in rows if any(key.startswith(MARKER_PROPERTY) for key in row.summary)]
        if marked:
            self._call("rollback_to_snapshot", name, f"snapshot_id => {self.random.choice(sorted(marked))}")

    def _drop(self, name: str) -> None:
        self.lake.spark().sql(f"DROP TABLE {name}")

    def _call(self, procedure: str, name: str, arguments: str) -> None:
        table = name.partition(".")[2].replace("`", "")
        self.lake.spark().sql(f"CALL lake.system.{procedure}(table => '{table}', {arguments})")
