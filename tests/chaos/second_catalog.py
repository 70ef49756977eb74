"""A copy of the source file with a catalog and a store of its own, over the same warehouse."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from demo.shop.compare import compare_database, open_lake
from spark_jobs.runtime.session import table_session
from tests.chaos.foreign_writers import ForeignWriters
from tests.chaos.lake_side import LakeSide
from tests.chaos.steps import Broken
from tests.chaos.workload import GROWING, ChaosWorkload

TABLES = 2
WRITTEN_SECONDS = 120
"""Younger files may be of a commit that is not done."""


@dataclass
class SecondCatalogs:
    """Makes copies of the source: each drains, merges and maintains a few tables, and is given up.

    Args:
        lake: of the source itself, which maintains the same tables.
        foreign: knows the tables that cannot be maintained.
        workload: writes to the source.
        folder: for the stores and catalogs of the copies.
        random: the random generator.
        say: takes a line for each copy.
    """

    lake: LakeSide
    foreign: ForeignWriters
    workload: ChaosWorkload
    folder: Path
    random: Random
    say: Callable[[str], None]
    _copies: int = 0

    def copy_the_source(self) -> None:
        """Neither of the two may touch what the other has: here the copy's tables are compared, later the source's."""
        self._copies += 1
        tables = self.random.sample(GROWING, TABLES)
        self.say(f"a copy of the source over the same warehouse has {' and '.join(tables)}")
        copy, session = self._copy(tables), self.lake.stack
        side = LakeSide(copy, session, Counter(), _spark=table_session(self.lake.spark(), copy.config))
        for _ in range(2):
            self.workload.work()
            self.workload.repair()
            self._round(copy, side)
        names = [f"{self.workload.database}.{table}" for table in tables]
        ours = [name for name in self.foreign.unchanged() if name in names]
        self._age()
        sides = [(side, names), *([(self.lake, ours)] if ours else [])]
        for one, known in self.random.sample(sides, len(sides)):
            one.maintain(known)
        self._compare(copy, tables)

    def _copy(self, tables: list[str]) -> Pipeline:
        pipeline, folder = self.lake.pipeline, self.folder / "copies" / str(self._copies)
        folder.mkdir(parents=True)
        config, captured = pipeline.config, tuple(f"{self.workload.database}.{table}" for table in tables)
        lake = {"catalog": f"copy_{self._copies}", "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000"}
        store = config.store.model_copy(update={"url": f"file://{folder}/store"})
        of_copy = config.model_copy(
            update={
                "lake": config.lake.model_copy(update=lake),
                "store": store,
                "tables": config.tables.model_copy(update={"include": captured}),
            }
        )
        objects = LocalStore(folder / "store")
        return Pipeline(of_copy, pipeline.credentials, objects, ObjectCursorStore(objects))

    def _round(self, copy: Pipeline, side: LakeSide) -> None:
        while units := copy.plan(by="copy"):
            for unit in units:
                copy.drain(unit)
            copy.ack_drain(by="copy")
        while (plan := copy.plan_merge(by="copy")) is not None:
            side.merge(plan)
            copy.ack_lake(by="copy")

    def _age(self) -> None:
        """Let the files of the warehouse be old, as those that maintenance removes if no table has them."""
        warehouse, latest = str(self.lake.pipeline.config.lake.warehouse).removeprefix("file://"), time.time()
        for path in Path(warehouse).rglob("*"):
            if path.is_file() and path.stat().st_mtime < latest - WRITTEN_SECONDS:
                os.utime(path, (0, 0))

    def _compare(self, copy: Pipeline, tables: list[str]) -> None:
        lake = copy.config.lake
        catalog = open_lake(str(lake.uri), str(lake.warehouse), lake.catalog)
        try:
            compared = compare_database(self.workload.options(), self.workload.database, catalog, tables=tables)
        finally:
            catalog.engine.dispose()
        if wrong := [str(table) for table in compared if table.differences]:
            raise Broken("of the copy: " + "\n".join(wrong))
        self.lake.events["rows of second catalogs compared"] += sum(table.source_rows for table in compared)
