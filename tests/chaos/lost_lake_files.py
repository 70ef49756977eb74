"""Lost files of lake tables: one of data, of metadata, a list of manifests, or the whole folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table
from sqlalchemy import select
from sqlalchemy.orm import Session

from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.cursor import DRAIN
from cdc_lib.status.overview import findings_of
from demo.shop.compare import open_lake
from tests.chaos.foreign_writers import ForeignWriters


@dataclass
class LostLakeFiles:
    """Removes files of the lake tables of one source.

    Args:
        foreign: the foreign writers of the run; tables with lost files are among those that they changed.
        random: the random generator.
        say: takes a line for each loss.
    """

    foreign: ForeignWriters
    random: Random
    say: Callable[[str], None]

    def lose_lake_files(self) -> None:
        """Remove something of a table."""
        table = self.foreign.choose(self.foreign.unchanged())
        if not table:
            return
        with self._catalog() as catalog:
            lost = self.random.choice((_data, _metadata, _manifests, _folder))(catalog.load_table(self._lake(table)))
        if lost is None:
            return
        self.say(f"a file of {table} is lost: {lost}")
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
        self.foreign.lake.events[f"lost lake files: {'folder' if lost.suffix == '' else lost.suffix}"] += 1
        self.foreign.changed.add(table)

    def unsaid(self, existing: Collection[str]) -> list[str]:
        """Return the tables of the source whose lake tables cannot be read although no finding and no quarantine names them."""
        changed = sorted(self.foreign.changed.intersection(existing))
        if not (lost := [table for table in changed if self._is_lost(table)]):
            return []
        pipeline = self.foreign.pipeline
        said = "\n".join(f"{one.what} {one.hint}" for one in findings_of(pipeline) if one.level != "ok")
        drain = pipeline.cursors.load(pipeline.config.source, DRAIN)
        known = {entry.table for entry in drain.quarantined_tables} if drain else set()
        return [table for table in lost if table not in said and table not in known]

    def _is_lost(self, table: str) -> bool:
        """Whether the newest metadata file of its lake table does not exist."""
        *space, name = self._lake(table)
        with self._catalog() as catalog, Session(catalog.engine) as session:
            row = session.scalar(
                select(IcebergTables).where(
                    IcebergTables.table_namespace == ".".join(space), IcebergTables.table_name == name
                )
            )
        return row is not None and not _path(str(row.metadata_location)).exists()

    def _lake(self, table: str) -> tuple[str, ...]:
        name = lake_merges(self.foreign.pipeline.config, [table])[0].name
        return *name.namespace, name.name

    @contextmanager
    def _catalog(self) -> Iterator[SqlCatalog]:
        lake = self.foreign.pipeline.config.lake
        catalog = open_lake(str(lake.uri), str(lake.warehouse))
        assert isinstance(catalog, SqlCatalog)
        try:
            yield catalog
        finally:
            catalog.engine.dispose()


def _data(table: Table) -> Path | None:
    return next((_path(task.file.file_path) for task in table.scan().plan_files()), None)


def _metadata(table: Table) -> Path:
    return _path(table.metadata_location)


def _manifests(table: Table) -> Path | None:
    snapshot = table.current_snapshot()
    return _path(snapshot.manifest_list) if snapshot is not None else None


def _folder(table: Table) -> Path:
    return _path(table.location())


def _path(location: str) -> Path:
    return Path(unquote(urlsplit(location).path))
