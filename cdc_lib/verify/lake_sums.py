"""The lake's side of a comparison without Spark: the reading client reads row groups, Arrow makes texts and hashes of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from os import cpu_count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.model.lake_table import LakeName, LakeTable
from cdc_lib.model.table_name import TableName
from cdc_lib.read.snapshot import RowGroup
from cdc_lib.verify.changed.keys import can_be_looked_up
from cdc_lib.verify.checksums import ListedRow, RangeBucket, Sum
from cdc_lib.verify.comparability import BUCKETS, Key, Subject
from cdc_lib.verify.judgement import RowState
from cdc_lib.verify.lake import states_of
from cdc_lib.verify.lake_reader import LakeBatch, LakeReader, Mask, Numbers
from cdc_lib.verify.lake_tables import LakeTables, OpenedTable

THREADS = 2 if (cpu_count() or 1) >= 4 else 1
"""Row groups that are read at once, of each some rows; on few processors a second thread would take time from the source's server."""

_DENSE = 4
"""Most parts per row for which sums are kept by number."""


@dataclass(frozen=True, slots=True)
class ArrowLakeSums:
    """Reads the lake in this process; implements :class:`cdc_lib.verify.lake.LakeSums`.

    Every method raises StoreUnavailable if the catalog or the storage does not answer, StoreError or ConfigError if the table has to
    be read with Spark.

    Args:
        tables: the lake.
        threads: row groups that are read at once.
    """

    tables: LakeTables
    threads: int = THREADS
    _opened: dict[tuple[LakeName, int | None], OpenedTable] = field(default_factory=dict)

    def load(self, lake: LakeName, table: TableName, *, routed: bool) -> LakeTable | None:
        """Return the current state of a lake table, with the marker of ``database.table``; None if it is missing."""
        opened = self.tables.find(lake, table, routed=routed)
        if opened is None:
            return None
        for name, snapshot_id in list(self._opened):
            if name != lake:
                del self._opened[name, snapshot_id]
        self._opened[lake, opened.snapshot.id] = opened
        return opened.state

    def parts(self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...]) -> dict[RangeBucket, Sum]:
        """Return the checksums of all parts of a table, in one pass."""
        if snapshot is None:
            return {}
        buckets = BUCKETS[subject.how]
        rows, hashes = (np.zeros((len(cuts) + 1) * buckets, np.int64) for _ in range(2))
        with translate_errors(subject.schema.name):
            reader = self._reader(subject, snapshot, cuts)
            read = partial(_sums, reader, reader.last_reset())
            with ThreadPoolExecutor(self.threads) as pool:
                for sums in pool.map(read, reader.groups()):
                    for one in sums:
                        rows[one.parts] += one.rows
                        hashes[one.parts] += one.hashes
        there = np.flatnonzero((rows != 0) | (hashes != 0))
        return {
            RangeBucket(*divmod(part, buckets)): Sum(count, total)
            for part, count, total in zip(there.tolist(), rows[there].tolist(), hashes[there].tolist(), strict=True)
        }

    def listed(
        self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...], parts: Collection[RangeBucket]
    ) -> list[ListedRow]:
        """Return the rows of some parts."""
        if snapshot is None or not parts:
            return []
        chosen = np.array([part.range * BUCKETS[subject.how] + part.bucket for part in parts], np.int64)
        batches = self._reader(subject, snapshot, cuts).all(*_ends(cuts, {part.range for part in parts}))
        return [row for batch in batches for row in batch.filtered(np.isin(batch.parts, chosen)).listed()]

    def rows(self, subject: Subject, snapshot: int | None, keys: Mapping[str, Key]) -> dict[str, RowState]:
        """Return rows by their names, each with the texts of its key."""
        if snapshot is None or not keys:
            return {}
        by_key = {name: key for name, key in keys.items() if _is_looked_up(subject, key)}
        states: dict[str, RowState] = {}
        try:
            states = self._opened[subject.lake, snapshot].rows(subject, by_key.values())
        except ConfigError:
            by_key = {}  # the source's type has values that the lake's cannot hold
        rest = [name for name in keys if name not in by_key]
        return states | (self._scanned(subject, snapshot, rest) if rest else {})

    def _scanned(self, subject: Subject, snapshot: int, names: list[str]) -> dict[str, RowState]:
        """Return rows by their names, from all rows."""
        by_hash = subject.how == "copies"
        asked = np.array(list(map(int, names)), np.int64) if by_hash else pa.array(names, pa.string())

        def is_asked(batch: LakeBatch) -> Mask:
            return np.isin(batch.hashes, asked) if by_hash else pc.is_in(batch.names, asked).to_numpy(False)

        batches = self._reader(subject, snapshot, order_keys=True).all()
        return states_of(subject, (row for batch in batches for row in batch.filtered(is_asked(batch)).states()))

    def _reader(
        self, subject: Subject, snapshot: int, cuts: tuple[int, ...] = (), *, order_keys: bool = False
    ) -> LakeReader:
        return LakeReader(self._opened[subject.lake, snapshot].snapshot, subject, cuts, order_keys=order_keys)


def _is_looked_up(subject: Subject, key: Key) -> bool:
    if subject.how == "copies" or any(cell.column.type.family.is_float for cell in subject.keys):
        return False  # two zeros are one key for a lookup
    return can_be_looked_up(subject.keys, key, subject.values)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Different parts, and the number of rows and the sum of hashes of each."""

    parts: Numbers
    rows: Numbers
    hashes: Numbers


def _sums(reader: LakeReader, after: tuple[int, ...] | None, group: RowGroup) -> list[_Sums]:
    """Return the checksums of the parts that have rows of a row group, some rows after the others."""
    return [_summed(batch.parts, batch.weights, batch.weights * batch.hashes) for batch in reader.read(group, after)]


def _summed(numbers: Numbers, rows: Numbers, hashes: Numbers) -> _Sums:
    first = int(numbers.min())
    places = numbers - first
    if int(places.max()) > _DENSE * len(places):
        parts, places = np.unique(numbers, return_inverse=True)
    else:
        parts = first + np.arange(int(places.max()) + 1)
    # Floating-point sums are exact: rows of one batch times 32 bits are less than 2 ** 53.
    return _Sums(parts, *(np.bincount(places, one).astype(np.int64) for one in (rows, hashes)))


def _ends(cuts: tuple[int, ...], ranges: Collection[int]) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of the key's first column in some ranges; None is no bound."""
    if not cuts:
        return None, None
    least, greatest = min(ranges), max(ranges)
    return cuts[least - 1] + 1 if least else None, cuts[greatest] if greatest < len(cuts) else None
