"""The sources that the page knows: those whose files lie in the folder of sources. No other name leads anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, HTTPException, Request

from cdc_airflow.connections import store_keys_of
from cdc_airflow.dag_ids import dag_id
from cdc_airflow.factory import sources_of_the_api_server
from cdc_airflow.page.desk import Desk, Question
from cdc_airflow.teams import readable, team_of
from cdc_lib.config import Loaded, SourceConfig, load_sources
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.ports import ObjectStore
from cdc_lib.source import Source
from cdc_lib.status.holdings import Holdings, HoldingsReader
from cdc_lib.status.table_rows import TableRow, table_rows
from cdc_lib.status.window_facts_reader import WindowFactsReader
from cdc_lib.store.objects.open import open_store

KEYS_FOR = 60.0
"""Seconds after which the keys of connections are looked up again: somebody may have added or changed them."""

T = TypeVar("T")
Signature = tuple[tuple[str, int, int], ...]


class UnknownSource(Exception):
    """An address names a DAG that is not that of a source."""


@dataclass
class Listed:
    """A source whose file is right, and what reads its documents.

    Args:
        config: what the file says.
        store: where the documents lie.
    """

    config: SourceConfig
    store: ObjectStore
    holdings: HoldingsReader = field(init=False)
    windows: WindowFactsReader = field(init=False)
    _rows: tuple[Holdings, list[TableRow]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Make the readers, which remember what cannot change."""
        self.holdings = HoldingsReader(Source.over(self.config, self.store))
        self.windows = WindowFactsReader(self.store)

    @property
    def name(self) -> str:
        """Of the source."""
        return self.config.source

    def question(self, what: str, read: Callable[[], T]) -> Question[T]:
        """Return a question about this source for the desk; sources of one store share its being away."""
        store = self.config.store
        server = store.endpoint_url or store.scheme  # the scheme of a folder is FOLDER
        return Question((self.name, what), (store.endpoint_url, store.url), server, read)

    @property
    def held(self) -> Question[Holdings]:
        """What the store holds of it: asked first of every source."""
        return self.question("holdings", self._read)

    def _read(self) -> Holdings:
        """Read the documents, and list the tables at once: of thousands, no request has to."""
        held = self.holdings.read_with_cuts(datetime.now(UTC))
        self._rows = held, table_rows(held)
        return held

    def rows(self, held: Holdings) -> list[TableRow]:
        """Return the tables of what was read, by name."""
        known = self._rows
        return known[1] if known is not None and known[0] is held else table_rows(held)


@dataclass(frozen=True, slots=True)
class Faulty:
    """A source whose file, or whose access to the store, is wrong.

    Args:
        name: of the source.
        error: what is wrong.
    """

    name: str
    error: CdcError


Sources = dict[str, Listed | Faulty]
"""By the id of the source's DAG."""


class Folder:
    """The source files of a folder. They are read again when one has changed; after :data:`KEYS_FOR` if one names a connection.

    Args:
        path: the folder.
        desk: keeps what was read of it.
    """

    def __init__(self, path: Path, desk: Desk) -> None:
        self.path, self.desk = path, desk
        self._read: tuple[Signature, Sources] = ((), {})
        self._at, self._has_keys = 0.0, False
        self._stores: dict[Hashable, ObjectStore] = {}

    def sources(self) -> Sources:
        """Return every source.

        Raises:
            NoAnswer: the files are still being read.
            ConfigError: there is no such folder.
        """
        return self.desk.ask(Question(str(self.path), str(self.path), "the folder of sources", self._load))

    def _load(self) -> Sources:
        signature, before = self._signature(), self._read[1]
        if not before or self._read[0] != signature or self._has_old_keys:
            files = load_sources(self.path)
            found = {dag_id(loaded.source): self._listed(loaded, before) for loaded in files}
            self._read, self._at = (signature, found), time.monotonic()
            self._has_keys = any(one.config is not None and one.config.store.connection is not None for one in files)
            used = {id(one.store) for one in found.values() if isinstance(one, Listed)}
            self._stores = {key: store for key, store in self._stores.items() if id(store) in used}
        return self._read[1]

    def _listed(self, loaded: Loaded, before: Sources) -> Listed | Faulty:
        config, known = loaded.config, before.get(dag_id(loaded.source))
        if config is None:
            return Faulty(loaded.source, loaded.error or ConfigError(f"{loaded.path.name} was not loaded"))
        try:
            store = self._store_of(config)
        except ConfigError as error:
            return Faulty(config.source, error)
        is_same = isinstance(known, Listed) and known.config == config and known.store is store
        return known if is_same and known is not None else Listed(config, store)

    @property
    def _has_old_keys(self) -> bool:
        return self._has_keys and time.monotonic() - self._at > KEYS_FOR

    def _store_of(self, config: SourceConfig) -> ObjectStore:
        """Return the store of a source: one for all sources with the same settings and keys."""
        keys = store_keys_of(config, team_of(dag_id(config.source)))
        key = (config.store.model_dump_json(), keys)
        if key not in self._stores:
            self._stores[key] = open_store(config.store, keys, impatient=True)
        return self._stores[key]

    def _signature(self) -> Signature:
        if not self.path.is_dir():
            raise ConfigError(
                f"there is no folder {self.path}",
                hint="Set CDC_SOURCES for the API server as for the DAG processor: the folder of the source files.",
            )
        files = ((path.name, path.stat()) for path in sorted(self.path.iterdir()))
        return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in files)


@cache
def folder_at(path: Path) -> Folder:
    """Return the folder of sources at a path, with what was read of it."""
    return Folder(path, Desk())


def folder() -> Folder:
    """Return the folder of sources of this API server."""
    return folder_at(sources_of_the_api_server())


AFolder = Annotated[Folder, Depends(folder)]
"""The folder of sources, for an endpoint."""


def _may_read(dag_id: str, request: Request, user: GetUserDep) -> None:
    requires_access_dag("GET")(request, user)
    if dag_id not in readable([dag_id], user):
        raise HTTPException(403, "Forbidden")


MAY_READ = Depends(_may_read)
"""For endpoints whose path has ``{dag_id}``: the user may read this DAG, as Airflow's own pages ask, and with teams it is known whose it is."""


def find(dag_id: str, folder: AFolder) -> Listed:
    """Return the source of a DAG.

    Raises:
        UnknownSource: there is none: the id is no part of any path or key.
        ConfigError: its file is wrong.
    """
    found = folder.sources().get(dag_id)
    if found is None:
        raise UnknownSource("There is no source with this DAG.")
    if isinstance(found, Faulty):
        raise found.error.with_traceback(None)
    return found


ASource = Annotated[Listed, Depends(find)]
"""The source of the DAG in the path, for an endpoint."""
