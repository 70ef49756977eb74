"""The sources that the page knows: those whose files lie in the folder of sources. No other name leads anywhere."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends

from cdc_airflow.factory import dag_id, sources_of_the_api_server
from cdc_airflow.page.desk import Desk, Question
from cdc_lib.config import SourceConfig, load_sources
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.ports import ObjectStore
from cdc_lib.status.holdings import Holdings, HoldingsReader
from cdc_lib.status.window_reader import WindowReader
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.objects.s3 import S3Store

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
    windows: WindowReader = field(init=False)

    def __post_init__(self) -> None:
        """Make the readers, which remember what cannot change."""
        self.holdings = HoldingsReader(self.store, ObjectCursorStore(self.store), self.config.source)
        self.windows = WindowReader(self.store)

    @property
    def name(self) -> str:
        """Of the source."""
        return self.config.source

    def question(self, what: str, read: Callable[[], T]) -> Question[T]:
        """Return a question about this source for the desk; sources of one store share its being away."""
        place = (self.config.store.endpoint_url, self.config.store.url)
        return Question((self.name, what), place, read)

    @property
    def held(self) -> Question[Holdings]:
        """What the store holds of it: asked first of every source."""
        return self.question("holdings", lambda: self.holdings.read(datetime.now(UTC)))


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
    """The source files of a folder; one that did not change is not read again.

    Args:
        path: the folder.
        desk: keeps what was read of it.
    """

    def __init__(self, path: Path, desk: Desk) -> None:
        self.path, self.desk = path, desk
        self._read: tuple[Signature, Sources] = ((), {})
        self._stores: dict[Hashable, ObjectStore] = {}

    def sources(self) -> Sources:
        """Return every source.

        Raises:
            NoAnswer: the files are still being read.
            ConfigError: there is no such folder.
        """
        return self.desk.ask(Question(str(self.path), str(self.path), self._load))

    def _load(self) -> Sources:
        signature = self._signature()
        if not self._read[1] or self._read[0] != signature:
            before = self._read[1]
            found: Sources = {}
            for loaded in load_sources(self.path):
                known = before.get(dag_id(loaded.source))
                if loaded.config is None:
                    error = loaded.error or ConfigError(f"{loaded.path.name} was not loaded")
                    found[dag_id(loaded.source)] = Faulty(loaded.source, error)
                elif isinstance(known, Listed) and known.config == loaded.config:
                    found[dag_id(loaded.source)] = known
                else:
                    found[dag_id(loaded.source)] = self._listed(loaded.config)
            self._read = (signature, found)
        return self._read[1]

    def _listed(self, config: SourceConfig) -> Listed | Faulty:
        key = config.store.model_dump_json()
        try:
            store = self._stores[key] = self._stores.get(key) or _impatient(open_store(config.store))
        except ConfigError as error:
            return Faulty(config.source, error)
        return Listed(config, store)

    def _signature(self) -> Signature:
        if not self.path.is_dir():
            raise ConfigError(
                f"there is no folder {self.path}",
                hint="Set CDC_SOURCES for the API server as for the DAG processor: the folder of the source files.",
            )
        files = ((path.name, path.stat()) for path in sorted(self.path.iterdir()))
        return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in files)


def _impatient(store: LocalStore | S3Store) -> ObjectStore:
    """Return a store that gives up in seconds: somebody waits in front of a screen, and asks again."""
    if isinstance(store, LocalStore):
        return store
    return S3Store(store.bucket, store.prefix, replace(store.options, connect_timeout=2, read_timeout=5, attempts=2))


@cache
def folder_at(path: Path) -> Folder:
    """Return the folder of sources at a path, with what was read of it."""
    return Folder(path, Desk())


def folder() -> Folder:
    """Return the folder of sources of this API server."""
    return folder_at(sources_of_the_api_server())


AFolder = Annotated[Folder, Depends(folder)]
"""The folder of sources, for an endpoint."""

MAY_READ = Depends(requires_access_dag("GET"))
"""For endpoints whose path has ``{dag_id}``: the user may read this DAG, as Airflow's own pages ask."""


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
