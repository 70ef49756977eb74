"""Searches the store and the lake of a source for rows of a table: their keys, and values that belong to them alone."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cdc_lib.backfill.decode import ArchiveDecoder
from cdc_lib.config import StoreKeys
from cdc_lib.erase.lake_files import LakeFiles
from cdc_lib.erase.needles import Needles
from cdc_lib.erase.places import (
    LAKE,
    LOST_FILE,
    Found,
    columns_by_id,
    in_avro,
    in_events,
    in_json,
    in_other,
    in_parquet,
    in_puffin,
    rows_of,
)
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.objects.local import LocalStore

_KINDS = {
    "batches": "batch",
    "snapshots": "snapshot",
    "cursors": "cursor",
    "verified": "comparison",
    "coverage": "comparison",
    "schemas": "schema history",
}
"""Kinds of places in the store, by the folder; others are documents."""


@dataclass(slots=True)
class Searched:
    """What a search found.

    Args:
        found: places with values of the rows.
        unread: places that could not be read, and why.
        objects: how many objects and files were read.
    """

    found: list[Found] = field(default_factory=list)
    unread: list[Found] = field(default_factory=list)
    objects: int = 0


class RowSearch:
    """Searches one table.

    Args:
        source: the source.
        table: ``database.table`` at the source.
        needles: what is looked for.
        keys: of the store's S3 account; those of the environment without.
    """

    def __init__(self, source: Source, table: TableName, needles: Needles, keys: StoreKeys | None = None) -> None:
        self._source = source
        self._keys = keys
        self._table = table
        merges = lake_merges(source.config, [table])
        # Columns that routes add: rows at the source have none.
        self._constants = {name for one in merges for each in one.routed_tables for name in each.constants(source.name)}
        self._look_for(needles)
        self._manifests: dict[str, Manifest | None] = {}
        self.result = Searched()

    @property
    def source_keys(self) -> tuple[tuple[Any, ...], ...]:
        """The keys of the rows, as the source has them."""
        return self._of_batches.keys

    def run(self) -> Searched:
        """Search everything."""
        self.result = Searched()
        self._manifests.clear()
        with translate_errors(), open_catalog(self._source.config, self._keys) as catalog:
            for merge in lake_merges(self._source.config, [self._table]):
                self._search_lake(LakeFiles.of(self._source.config, catalog, merge.name))
        for info in self._source.store.list(f"{self._source.name}/"):
            self._look(_kind(info.key), info.key, self._in_object(info.key))
        now = datetime.now(UTC)
        for write in self._source.store.unfinished(f"{self._source.name}/", now):
            self.result.unread.append(Found("unfinished write", write.name, "its bytes cannot be read"))
        return self.result

    def _look(self, kind: str, place: str, what: Iterator[str]) -> None:
        self.result.objects += 1
        try:
            if self._needles.in_text(place):
                self.result.found.append(Found(kind, place, "its name"))
            for one in what:
                self.result.found.append(Found(kind, place, one))
        except Exception as error:  # noqa: BLE001 - a damaged file raises errors of many kinds: the search goes on and says so
            self.result.unread.append(Found(kind, place, f"{type(error).__name__}: {error}"))

    def _search_lake(self, files: LakeFiles) -> None:
        ids = files.ids((*self._needles.names, *self._needles.values))
        types = files.types(ids)
        kind = LAKE if files.table is not None else f"{LAKE}, of a dropped table"
        locations = files.locations()
        for location, named in locations.items():
            of = LOST_FILE if files.table is not None and not named else kind
            self._look(of, location, self._in_file(files, location, ids, types))
        if not files.are_listed or not locations:
            why = "its folder cannot be listed: only the files that its metadata name were read"
            self.result.unread.append(Found(kind, str(files.name), why))

    def _in_file(
        self, files: LakeFiles, location: str, ids: Mapping[str, list[int]], types: Mapping[int, Any]
    ) -> Iterator[str]:
        file = files.io.new_input(location)
        if location.endswith(".parquet"):
            with file.open() as data:
                yield from in_parquet(data, columns_by_id(_schema(data), ids), self._needles)
        elif location.endswith(".avro"):
            yield from in_avro(file, types, self._needles)
        elif location.endswith(".json"):
            with file.open() as data:
                yield from in_json(data.read(), (), self._needles)
        elif location.endswith((".puffin", ".stats")):
            with file.open() as data:
                yield from in_puffin(data.read(), self._needles)
        else:
            with file.open() as data:
                yield from in_other(data, self._needles)

    def _in_object(self, key: str) -> Iterator[str]:
        store = self._source.store
        if key.endswith(".parquet"):
            if layout.table_folder(self._table) in key.split("/"):
                with store.open_read(key) as data:
                    yield from in_parquet(data, self._named(key, _schema(data)), self._of_batches)
        elif key.endswith(".json"):
            if (found := store.get(key)) is not None:
                yield from in_json(found.data, [self._table], self._of_batches)
        elif key.endswith(".zst"):
            with store.open_read(key) as events:
                yield from in_events(events, self._needles)
            yield from self._in_archive(key)
        else:
            with store.open_read(key) as data:
                yield from in_other(data, self._needles)

    def _look_for(self, needles: Needles) -> None:
        """Set what is looked for in the lake, and in batches."""
        self._needles, self._of_batches = needles, needles.without(self._constants)

    def _named(self, key: str, schema: Any, manifest: Manifest | None = None) -> dict[str, str]:
        """Return the columns of a file of a batch by the names that the lake table has now."""
        folder = layout.batch_folder(key)
        manifest = manifest or self._manifest(layout.manifest_in(folder))
        files = (*manifest.files, *manifest.prepared_files) if manifest is not None else ()
        file = next((one for one in files if f"{folder}/{one.path}" == key), None)
        names = self._of_batches.names
        had = manifest.schemas[file.schema_id].primary_key if manifest is not None and file is not None else ()
        keys = dict(zip(names, had, strict=True)) if len(had) == len(names) else {name: name for name in names}
        found = {name: column for name, column in keys.items() if column in schema.names}
        return found | {name: name for name in self._needles.values if name in schema.names and name not in found}

    def _manifest(self, key: str) -> Manifest | None:
        if key not in self._manifests:
            self._manifests[key] = find_manifest(self._source.store, key)
        return self._manifests[key]

    def _in_archive(self, key: str) -> Iterator[str]:
        """Yield whether raw events decode to one of the rows."""
        manifest = self._manifest(layout.manifest_in(key.rpartition("/raw/")[0]))
        cursor = self._source.cursor(DRAIN)
        if manifest is None or manifest.window is None or manifest.raw is None or cursor is None:
            raise ValueError("the events cannot be decoded: their manifest or the drain cursor is missing")
        with tempfile.TemporaryDirectory() as folder:
            target = LocalStore(Path(folder))
            again = ArchiveDecoder(self._source, target, with_erased=True).write(manifest.window, manifest.raw, cursor)
            mine = [one for one in (*again.files, *again.prepared_files) if one.table == self._table]
            for file in mine:
                at = layout.beside(layout.manifest_key(manifest.window), file.path)
                with closing(target.open_read(at)) as data:
                    for what in in_parquet(data, self._named(at, _schema(data), again), self._of_batches):
                        yield f"{what} of events"

    def keys_of(self, erasure: Erasure) -> list[tuple[Any, ...]]:
        """Return the keys of the rows of an erasure that a file still has; none where a route adds columns to the key."""
        names, found = self._of_batches.names, dict[tuple[Any, ...], None]()
        if names != self._needles.names:
            return []
        for named, data in self._parquet(()):
            if set(names) <= set(named):
                for batch in pq.ParquetFile(data).iter_batches(columns=[named[name] for name in names]):
                    keys = list(zip(*(batch.column(named[name]).to_pylist() for name in names), strict=True))
                    found.update(dict.fromkeys(itertools.compress(keys, erasure.has(keys))))
        return list(found)

    def look_for_values(self, columns: Sequence[str]) -> None:
        """Look for the values of columns in every row that is found now, too."""
        known = self._needles
        found: dict[str, set[Any]] = {name: set(known.values.get(name, ())) for name in columns}
        probe = replace(known, values={name: frozenset() for name in columns})
        self._look_for(probe)
        for named, data in self._parquet(columns):
            for batch in pq.ParquetFile(data).iter_batches():
                needles = probe if set(probe.names) <= set(named) else self._of_batches
                rows = batch.filter(rows_of(batch, named, needles))
                for name in columns:
                    if name in named:
                        found[name].update(rows.column(named[name]).to_pylist())
        values = {name: frozenset(values - {None, ""}) for name, values in found.items()}
        self._look_for(replace(known, values={**known.values, **values}))

    def _parquet(self, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, str], Any]]:
        """Yield the columns of each readable file with rows of the table, and the file."""
        with translate_errors(), open_catalog(self._source.config, self._keys) as catalog:
            for merge in lake_merges(self._source.config, [self._table]):
                files = LakeFiles.of(self._source.config, catalog, merge.name)
                ids = files.ids((*self._needles.names, *columns))
                for location in files.locations():
                    if location.endswith(".parquet"):
                        with files.io.new_input(location).open() as data:
                            yield columns_by_id(_schema(data), ids), data
        for info in self._source.store.list(f"{self._source.name}/"):
            if info.key.endswith(".parquet") and layout.table_folder(self._table) in info.key.split("/"):
                with self._source.store.open_read(info.key) as data:
                    yield self._named(info.key, _schema(data)), data


def _kind(key: str) -> str:
    if "/raw/" in key:
        return "raw events"
    return _KINDS.get(key.split("/")[1], "document")


def _schema(data: Any) -> Any:
    schema = pq.ParquetFile(data).schema_arrow
    data.seek(0)
    return schema
