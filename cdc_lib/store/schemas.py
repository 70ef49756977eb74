"""Stores schema versions: each is written once and never changed.

The version at a position is found by keys alone; only its document is read. A listing may lack new keys: those of the last versions
come from the drain cursor and the manifests of the windows in flight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import chain

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.folder import front_of_folders
from cdc_lib.model.position import Position
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

_MANY = 16
"""Tables from which on one listing of all versions costs less than one for each of them."""


@dataclass(frozen=True, slots=True)
class FormerState:
    """What an epoch knew of a table at a position to which the cursor went back.

    Args:
        version: the version there.
        unseen_since: whether a change was noticed at the position or after it that no statement shows.
    """

    version: SchemaVersion
    unseen_since: bool

    def held_at(self, position: Position) -> bool:
        """Whether the version held at a position."""
        return self.version.position <= position and not self.unseen_since


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """The versions of one source in one epoch.

    Args:
        store: the object store.
        source: name of the source.
        epoch: epoch of their positions.
        known: keys that a listing may lack; true for those that are stored here, or were by an attempt before.
    """

    store: ObjectStore
    source: str
    epoch: int
    known: dict[str, bool] = field(default_factory=dict)

    def at(self, database: str, table: str, position: Position) -> SchemaVersion | None:
        """Return the newest version at or before a position, or None."""
        limit = _limit(position)
        return self._load([key for key in self._keys(database, table) if key.rpartition("/")[2] < limit])

    def known_from(self, database: str, table: str, position: Position) -> SchemaVersion | None:
        """Return the version that begins at a position, or None if there is none or its definition is unknown."""
        prefix = f"{position.sortable}-"
        keys = [key for key in self._keys(database, table) if key.rpartition("/")[2].startswith(prefix)]
        version = self._load(keys)
        return version if version is not None and version.definition is not None else None

    def put(self, version: SchemaVersion) -> SchemaVersion:
        """Write a version if the key is free; returns the stored one."""
        key = layout.version_key(version)
        self.known[key] = True
        if self.store.put_if_absent(key, documents.dump(version)):
            return version
        state = self._load([key])
        if state is None:
            raise CorruptBatch(
                "a schema version was removed right after it was found", hint="Run the task again.", key=key
            )
        return state

    def begun_before(self, entities: Iterable[tuple[str, str]], position: Position) -> dict[tuple[str, str], bool]:
        """Return whether the oldest version is before a position, of each table and database that has versions.

        Args:
            entities: (database, table) of each; a database has no table. Many are looked up in one listing.
            position: any.
        """
        prefixes = {layout.versions_prefix(self.source, self.epoch, *entity): entity for entity in entities}
        listed = list(prefixes) if len(prefixes) < _MANY else [layout.schemas_prefix(self.source, self.epoch)]
        found: dict[tuple[str, str], bool] = {}
        for key in chain.from_iterable(map(self._below, listed)):
            folder, _, name = key.rpartition("/")
            if (entity := prefixes.get(f"{folder}/")) is not None:
                found.setdefault(entity, name < position.sortable)
        return found

    def newest(self, position: Position | None = None) -> dict[str, str]:
        """Return the key of the newest version of each table and database, by the prefix of its versions.

        Args:
            position: only versions at or before it count; None for all.
        """
        limit = _limit(position) if position is not None else None
        found: dict[str, str] = {}
        for key in self._below(layout.schemas_prefix(self.source, self.epoch)):
            folder, _, name = key.rpartition("/")
            if limit is None or name < limit:
                found[f"{folder}/"] = key
        return found

    def states(self, position: Position) -> dict[tuple[str, str], FormerState]:
        """Return what is known of each table and database at a position; of one that is known only later, its first version."""
        limit, folders = _limit(position), defaultdict[str, list[str]](list)
        for key in self._below(layout.schemas_prefix(self.source, self.epoch)):
            folder, _, name = key.rpartition("/")
            folders[folder].append(name)
        found = {}
        for folder, names in folders.items():
            version = self.load(f"{folder}/{max((n for n in names if n < limit), default=min(names))}")
            if version is not None:
                found[version.database, version.table] = FormerState(version, _has_unseen(names, position))
        return found

    def has_unseen(self, database: str, table: str, position: Position) -> bool:
        """Whether a change was noticed at a position or after it that no statement shows."""
        names = (key.rpartition("/")[2] for key in self._keys(database, table))
        return _has_unseen(names, position)

    def tables_of(self, databases: Collection[str], position: Position) -> dict[str, list[tuple[str, str]]]:
        """Return (database, table) of the tables with a definition at a position, by database, in no order; in one listing."""
        found: dict[str, list[tuple[str, str]]] = {database: [] for database in databases}
        if not found:
            return found
        tables = f"{layout.schemas_prefix(self.source, self.epoch)}tables/"
        fronts = tuple(f"{tables}{front_of_folders(database)}" for database in found)
        keys = (key for key in self.newest(position).values() if key.startswith(fronts) and "-lost." not in key)
        for version in map(self.load, keys):
            if version is not None and version.database in found:
                found[version.database].append((version.database, version.table))
        return found

    def _keys(self, database: str, table: str) -> list[str]:
        return self._below(layout.versions_prefix(self.source, self.epoch, database, table))

    def _below(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, in order."""
        return sorted(
            {*(info.key for info in self.store.list(prefix)), *(k for k in self.known if k.startswith(prefix))}
        )

    def load(self, key: str) -> SchemaVersion | None:
        """Return the version under a key, or None."""
        return documents.find(SchemaVersion, self.store, key)

    def _load(self, keys: list[str]) -> SchemaVersion | None:
        return self.load(max(keys)) if keys else None


class VersionsAt:
    """The versions at one position: of a few tables each is looked up, of many they are listed once.

    Args:
        versions: of the source.
        position: the versions at or before it count.
    """

    def __init__(self, versions: SchemaVersions, position: Position) -> None:
        """Look up nothing yet."""
        self._versions = versions
        self._position = position
        self._asked = 0
        self._newest: dict[str, str] | None = None

    def of(self, database: str, table: str) -> SchemaVersion | None:
        """Return the newest version of a table or database, or None."""
        self._asked += 1
        if self._asked < _MANY:
            return self._versions.at(database, table, self._position)
        if self._newest is None:
            self._newest = self._versions.newest(self._position)
        prefix = layout.versions_prefix(self._versions.source, self._versions.epoch, database, table)
        key = self._newest.get(prefix)
        return self._versions.load(key) if key is not None else None


def _has_unseen(names: Iterable[str], position: Position) -> bool:
    """Whether one of the names of versions is of a change at a position or after it that no statement shows."""
    return any("-unseen" in name and name >= position.sortable for name in names)


def _limit(position: Position) -> str:
    """Return a text after the names of all versions at a position, and before those of later ones."""
    return f"{position.sortable}-z"
