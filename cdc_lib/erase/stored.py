"""Removes erased rows from what the store has of a source: batches, chunks, raw events, and comparisons with their keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc_lib.apply.removals import is_before_erasure
from cdc_lib.drain.batch import batch_writer
from cdc_lib.drain.erased import erased_among
from cdc_lib.erase.places import LAKE, Found
from cdc_lib.errors import BatchMismatch
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.schema import TableSchema
from cdc_lib.source import Source
from cdc_lib.store import documents, layout
from cdc_lib.store.batch_rows import parquet_file
from cdc_lib.store.manifests import find_manifest

_DIGEST = 8
"""Bytes of the digest in the name of a file that was written again."""

_WRITTEN_AGAIN = re.compile(f"-[0-9a-f]{{{2 * _DIGEST}}}$")

COMPARISONS = ("verified", "coverage")
"""Folders of documents that the next comparison writes again."""


@dataclass(frozen=True, slots=True)
class StoredRowsEraser:
    """Removes the rows of one erasure.

    Args:
        source: the source.
        erasure: the rows.
    """

    source: Source
    erasure: Erasure

    def remove(self, found: Iterable[Found]) -> int:
        """Remove rows from places that a search found; returns from how many batches and documents.

        A file is written again beside the old one, the manifest then names the new one, and at last the old one goes: a reader
        sees the one or the other.

        Raises:
            BatchMismatch: another task changed a manifest at the same time.
        """
        places, changed = {one.place for one in found if not one.kind.startswith(LAKE)}, 0
        for folder in sorted({folder for place in places if (folder := layout.batch_folder(place))}):
            changed += self._clean(layout.manifest_in(folder), places)
        comparisons = [place for place in places if place.split("/")[1] in COMPARISONS]
        self.source.store.delete(comparisons)
        return changed + len(comparisons)

    def _clean(self, key: str, places: set[str]) -> bool:
        store, old = self.source.store, find_manifest(self.source.store, key)
        if old is None:
            return False  # a drain that has not ended, or has died
        new = self._without(old, key, places)
        if (
            new != old
            and documents.changed(Manifest, store, key, lambda now: new if now == old else _moved(key)) is None
        ):
            raise _other(key)
        named = {layout.beside(key, file.path) for file in (*new.files, *new.prepared_files)}
        mine = layout.batch_folder(key) + "/"
        unnamed = [one for one in places if one.startswith(mine) and one.endswith(".parquet") and one not in named]
        if new.raw is None:
            unnamed += [info.key for info in store.list(mine + layout.raw_prefix())]
        store.delete(unnamed)
        return bool(new != old or unnamed)

    def _without(self, manifest: Manifest, key: str, places: set[str]) -> Manifest:
        """Return a manifest without the rows, whose new files are written."""
        files, prepared = (
            self._files(manifest, key, manifest.files),
            self._files(manifest, key, manifest.prepared_files),
        )
        has_raw = any(place.startswith(layout.beside(key, layout.raw_prefix())) for place in places)
        is_changed = (files, prepared) != (manifest.files, manifest.prepared_files)
        chunk = manifest.chunk
        if chunk is not None and chunk.table == self.erasure.table and key in places:
            chunk = replace(chunk, last_key=None, upper_key=None)
        raw = None if has_raw or is_changed else manifest.raw
        return replace(manifest, files=files, prepared_files=prepared, chunk=chunk, raw=raw)

    def _files(self, manifest: Manifest, key: str, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        bounded = manifest.chunk is not None
        new = (
            self._written(key, file, manifest.schemas[file.schema_id], bounded=bounded)
            if file.table == self.erasure.table
            else file
            for file in files
        )
        return tuple(file for file in new if file is not None)

    def _written(self, key: str, file: DataFile, schema: TableSchema, *, bounded: bool) -> DataFile | None:
        """Write a file again if it has one of the rows; returns what the manifest then names, None if nothing is left of it."""
        beside = _name_beside(file.path, self.erasure.id)
        columns = schema.primary_key if bounded else ()
        with parquet_file(self.source.store, layout.beside(key, file.path)) as parquet:
            groups = range(parquet.num_row_groups)
            if not any(self._erased(parquet.read_row_group(number), schema).any() for number in groups):
                return file
            with batch_writer(self.source.config, self.source.store, key, lambda *_: beside, columns) as writer:
                for number in groups:
                    rows = parquet.read_row_group(number)
                    rows = rows.filter(pa.array(~self._erased(rows, schema)))
                    if rows.num_rows:
                        writer.write("0", schema, rows, file.renames)
        return next(iter(writer.files), None)

    def _erased(self, rows: pa.Table, schema: TableSchema) -> NDArray[np.bool_]:
        before = is_before_erasure(self.erasure, rows) & bool(schema.primary_key)
        return erased_among(self.erasure, rows, schema.primary_key, before)


def _name_beside(path: str, erasure: str) -> str:
    """Return the path of a file that is written again: after each erasure another one, which is no longer than the first."""
    old = PurePosixPath(path)
    digest = hashlib.blake2b(f"{old.name} {erasure}".encode(), digest_size=_DIGEST).hexdigest()
    return str(old.with_name(f"{_WRITTEN_AGAIN.sub('', old.stem)}-{digest}.parquet"))


def _moved(key: str) -> Manifest:
    raise _other(key)


def _other(key: str) -> BatchMismatch:
    return BatchMismatch("a manifest changed while rows of it were erased", hint="Run the same command again.", key=key)
