"""Which rows of a data file are deleted: by its deletion vector (format version 3), or by files of positions (version 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc_lib.apply.deletion_vector import parse_vector
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.manifests import Files, LiveFile, PositionFile, VectorFile
from cdc_lib.read.parquet import ParquetFiles, translate_file_errors

_PATH = ReadColumn("file_path", 2147483546, pa.string())
_POSITION = ReadColumn("pos", 2147483545, pa.int64())


class Deleted(Protocol):
    """The positions of the deleted rows of a data file."""

    def __contains__(self, position: int) -> bool: ...

    def mask(self, start: int, count: int) -> NDArray[np.bool_]:
        """Return for each of ``count`` rows from ``start`` on whether it is deleted."""


@dataclass(frozen=True, slots=True)
class Positions:
    """Deleted rows as sorted positions."""

    sorted: NDArray[np.int64]

    def __contains__(self, position: int) -> bool:
        at = int(self.sorted.searchsorted(position))
        return at < len(self.sorted) and int(self.sorted[at]) == position

    def mask(self, start: int, count: int) -> NDArray[np.bool_]:
        """Return for each of ``count`` rows from ``start`` on whether it is deleted."""
        found = np.zeros(count, np.bool_)
        first, last = self.sorted.searchsorted([start, start + count])
        found[self.sorted[first:last] - start] = True
        return found


class Deletes:
    """The deletes of one snapshot, each read when it is first asked for.

    Args:
        files: of the snapshot.
        parquet: opens files.
        cache: keeps what was read.
    """

    def __init__(self, files: Files, parquet: ParquetFiles, cache: Cache) -> None:
        self._files = files
        self._parquet = parquet
        self._cache = cache

    def named(self, file: LiveFile) -> frozenset[object]:
        """Return the delete files of a data file, by their locations; none of them is read."""
        vector = self._files.vectors.get(file.path)
        if vector is not None:
            return frozenset([(vector.path, vector.offset)])
        return frozenset(one.path for one in self._files.positions if one.may_cover(file))

    def of(self, file: LiveFile) -> Deleted | None:
        """Return the deleted rows of a data file; None if none can be.

        Raises:
            StoreUnavailable: the storage does not answer.
            StoreError: a delete file does not exist, or is damaged.
        """
        vector = self._files.vectors.get(file.path)
        if vector is not None:
            # It has the rows of all files of positions before it.
            found: Deleted = self._cache.get(
                ("deletion vector", vector.path, vector.offset), lambda: self._vector(vector)
            )
            return found
        covering = [one for one in self._files.positions if one.may_cover(file)]
        parts = [self._positions(one).get(file.path) for one in covering]
        known = [part for part in parts if part is not None]
        return Positions(np.unique(np.concatenate(known))) if known else None

    def _vector(self, file: VectorFile) -> tuple[Deleted, int]:
        blob = self._parquet.read_bytes(file.path, file.offset, file.size)
        with translate_file_errors(file.path):
            return parse_vector(blob, file.rows), 2 * file.size + 1_000

    def _positions(self, file: PositionFile) -> dict[str, NDArray[np.int64]]:
        by_path: dict[str, NDArray[np.int64]] = self._cache.get(
            ("positions", file.path), lambda: (self._read_positions(file), 16 * file.rows + 1_000)
        )
        return by_path

    def _read_positions(self, file: PositionFile) -> dict[str, NDArray[np.int64]]:
        opened = self._parquet.open(file.path)
        tables = [opened.read(number, (_PATH, _POSITION)) for number in opened.row_groups]
        rows = pa.concat_tables(tables).sort_by([("file_path", "ascending"), ("pos", "ascending")])
        paths = rows.column("file_path").combine_chunks().dictionary_encode()
        positions = rows.column("pos").to_numpy()
        codes = paths.indices.to_numpy()
        return {path: positions[codes == code] for code, path in enumerate(paths.dictionary.to_pylist())}
