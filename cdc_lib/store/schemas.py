"""Stores schema versions: each is written once and never changed.

The version at a position is found by keys alone; only its document is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.position import Position
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    """The versions of one source in one epoch.

    Args:
        store: the object store.
        source: name of the source.
        epoch: epoch of their positions.
    """

    store: ObjectStore
    source: str
    epoch: int

    def at(self, database: str, table: str, position: Position) -> SchemaVersion | None:
        """Return the newest version at or before a position, or None."""
        limit = f"{position.sortable}-z"
        return self._load([key for key in self._keys(database, table) if key.rpartition("/")[2] < limit])

    def known_from(self, database: str, table: str, position: Position) -> SchemaVersion | None:
        """Return the version that begins at a position, or None if there is none or its definition is unknown."""
        prefix = f"{position.sortable}-"
        keys = [key for key in self._keys(database, table) if key.rpartition("/")[2].startswith(prefix)]
        version = self._load(keys)
        return version if version is not None and version.definition is not None else None

    def any(self, database: str, table: str) -> bool:
        """Whether there is any version."""
        return next(iter(self._keys(database, table)), None) is not None

    def put(self, version: SchemaVersion) -> SchemaVersion:
        """Write a version if the key is free; returns the stored one."""
        key = layout.version_key(version)
        if self.store.put_if_absent(key, documents.dump(version)):
            return version
        state = self._load([key])
        if state is None:
            raise CorruptBatch(
                "a schema version was removed right after it was found", hint="Run the task again.", key=key
            )
        return state

    def newest(self) -> dict[str, str]:
        """Return the key of the newest version of each table and database, by the prefix of its versions."""
        found: dict[str, str] = {}
        for info in self.store.list(layout.schemas_prefix(self.source, self.epoch)):
            found[info.key.rpartition("/")[0] + "/"] = info.key
        return found

    def _keys(self, database: str, table: str) -> Iterator[str]:
        for info in self.store.list(layout.versions_prefix(self.source, self.epoch, database, table)):
            yield info.key

    def load(self, key: str) -> SchemaVersion | None:
        """Return the version under a key, or None."""
        return documents.find(SchemaVersion, self.store, key)

    def _load(self, keys: list[str]) -> SchemaVersion | None:
        return self.load(max(keys)) if keys else None
