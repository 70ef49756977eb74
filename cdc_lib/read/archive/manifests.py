"""What the manifests of many windows have of one table; each is read once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pydantic_core import to_json

from cdc_lib.merge.table_resets import expand_database_statements
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.read.archive.reach import WindowSlice, has_table
from cdc_lib.read.cache import Cache
from cdc_lib.store import documents
from cdc_lib.store.manifests import find_manifest

_THREADS = 8
"""Manifests that are read at once: object storage takes its time."""

_EVERY_TABLE = re.compile(rb'\n\s*""\s*\n')
"""The second part of a pair that names all tables of a database, in an indented document."""

_NO_XA = (b'"prepared": []', b'"xa_decisions": []')


@dataclass(frozen=True, slots=True)
class TableManifests:
    """Reads manifests for one table.

    Args:
        store: holds the batches.
        cache: keeps what was read: a manifest never changes.
        table: ``database.table`` at the source.
    """

    store: ObjectStore
    cache: Cache
    table: TableName

    def of(self, slices: Sequence[WindowSlice]) -> list[tuple[WindowSlice, Manifest | None]]:
        """Return what windows have of the table, without those up to the last one that was removed meanwhile.

        Args:
            slices: in the stream's order.

        Returns:
            Each window with its manifest, of which the files, schemas and statements of the table and all XA transactions are left;
            None if it has nothing of these.

        Raises:
            CorruptBatch: a manifest cannot be read.
        """
        with ThreadPoolExecutor(_THREADS) as threads:
            found = list(threads.map(lambda part: self._find(part.window.key), slices))
        first = max((number for number, (is_stored, _) in enumerate(found, 1) if not is_stored), default=0)
        return [(part, kept) for part, (_, kept) in zip(slices[first:], found[first:], strict=True)]

    def whole(self, part: WindowSlice) -> Manifest | None:
        """Return the whole manifest of a window; None if it was removed."""
        return find_manifest(self.store, part.window.key)

    def _find(self, key: str) -> tuple[bool, Manifest | None]:
        """Return whether a manifest is stored, and what it has of the table."""

        def load() -> tuple[Manifest | None, int]:
            stored = self.store.get(key)
            if stored is None:
                raise _Removed
            found = documents.load(Manifest, stored.data, key) if may_concern(stored.data, self.table) else None
            kept = of_table(found, self.table) if found is not None else None
            return kept, 200 if kept is None else 3_000 + 1_000 * (len(kept.files) + len(kept.prepared))

        try:
            return True, self.cache.get(("archived manifest", key, self.table), load)
        except _Removed:
            return False, None


class _Removed(Exception):
    """Retention removed a manifest; that is not kept in the cache, because a refill may bring it back."""


def may_concern(data: bytes, table: TableName) -> bool:
    """Whether a manifest may be about a table or about XA transactions, by its bytes: parsing takes a thousand times as long."""
    name: bytes = to_json(table.table)
    return name in data or _EVERY_TABLE.search(data) is not None or not all(one in data for one in _NO_XA)


def of_table(manifest: Manifest, table: TableName) -> Manifest | None:
    """Return what a manifest has of one table, with all XA transactions; None if it has nothing of these."""

    def own(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        return tuple(one for one in files if one.table == table)

    statements = expand_database_statements(manifest, {table}).statements
    kept = replace(
        manifest,
        files=own(manifest.files),
        prepared_files=own(manifest.prepared_files),
        schemas={name: one for name, one in manifest.schemas.items() if one.name == table},
        statements=tuple(one for one in statements if one.table == table),
        quarantined=tuple(one for one in manifest.quarantined if one.table == table),
        ddl=(),
        raw=None,
    )
    return kept if has_table(kept) or kept.prepared or kept.xa_decisions else None
