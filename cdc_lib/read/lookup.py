"""Rows of one key or of many keys in a snapshot."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from cdc_lib.apply.key_rows import AskedKeys, OrderValue, RowKey, Rows
from cdc_lib.read.bounds import Bound
from cdc_lib.read.columns import ReadColumn, in_order
from cdc_lib.read.manifests import LiveFile
from cdc_lib.read.snapshot import Hit, PinnedSnapshot, RowGroup, shown

_TOGETHER = 8
"""Row groups of one file whose pages are decoded together: each decoding has a cost of its own."""
_REMOTE_THREADS = 8
"""Threads that read row groups for many keys from object storage, which takes its time."""
_LOCAL_THREADS = min(_REMOTE_THREADS, os.cpu_count() or 1)
"""The same for files of this machine. More threads than processors wait for each other: a part of the work is Python."""


def find(snapshot: PinnedSnapshot, key: RowKey, *, everything: bool) -> Iterator[Hit]:
    """Yield the row groups that have rows of a key, and the rows.

    Args:
        snapshot: where to look.
        key: a whole key.
        everything: whether rows that the mode hides are found too.
    """
    order = _with_mark(snapshot, key.order, everything=everything)
    for file in snapshot.files_with(order):
        for group in snapshot.row_groups_with(file, order):
            keys = snapshot.key_rows(group)
            rows = shown(snapshot.mode, keys, keys.with_key(key), everything=everything)
            live = snapshot.live(group, rows)
            if len(live):
                yield group, live


def _with_mark(snapshot: PinnedSnapshot, order: tuple[OrderValue, ...], *, everything: bool) -> tuple[OrderValue, ...]:
    """Return a key with the mark of scd2's current versions, so that files of others are left out."""
    return order if everything or snapshot.mode != "scd2" else (*order, 1)


class Many:
    """Looks many keys up, and reads each row group once.

    Args:
        snapshot: where to look.
        keys: different keys.
        everything: whether rows that the mode hides are found too.
    """

    def __init__(self, snapshot: PinnedSnapshot, keys: Sequence[RowKey], *, everything: bool) -> None:
        self._snapshot = snapshot
        self._keys = sorted(keys, key=_first)
        self._everything = everything
        self._asked = AskedKeys.of(self._keys)

    def read(self, columns: Sequence[ReadColumn]) -> tuple[pa.Table, list[RowKey]]:
        """Return the rows that were found, and the key of each."""
        groups = list(self._candidates())
        most = _REMOTE_THREADS if any(group.opened.is_remote for group in groups) else _LOCAL_THREADS
        with ThreadPoolExecutor(min(most, max(1, len(groups)))) as threads:
            found = [one for one in threads.map(self._find, groups) if len(one[0][1])]
            hits, numbers = [hit for hit, _ in found], [some for _, some in found]
            parts = threads.map(lambda some: self._snapshot.read_hits(some, columns), _of_one_file(hits))
            rows = in_order(list(parts), columns)
        return rows, [self._keys[number] for some in numbers for number in some.tolist()]

    def _find(self, group: RowGroup) -> tuple[Hit, Rows]:
        """Return the rows of a row group that have one of the keys, and the number of the key of each."""
        snapshot = self._snapshot
        keys = snapshot.key_rows(group)
        rows, numbers = self._asked.find(keys)
        live = snapshot.live(group, shown(snapshot.mode, keys, rows, everything=self._everything))
        return (group, live), numbers[np.isin(rows, live, assume_unique=True)]

    def _candidates(self) -> Iterator[RowGroup]:
        by_file: dict[LiveFile, list[RowKey]] = defaultdict(list)
        for key in self._keys:
            order = _with_mark(self._snapshot, key.order, everything=self._everything)
            for file in self._snapshot.files_with(order):
                by_file[file].append(key)
        for file, keys in by_file.items():
            firsts = [_first(key) for key in keys]
            for group, bounds in self._snapshot.row_groups(file):
                if any(self._may_have(bounds, key) for key in _within(bounds[0], firsts, keys)):
                    yield group

    def _may_have(self, bounds: Sequence[Bound], key: RowKey) -> bool:
        order = _with_mark(self._snapshot, key.order, everything=self._everything)
        return all(bound.may_have(value) for bound, value in zip(bounds, order, strict=False))


def _of_one_file(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Return row groups that follow each other in a file together, as many as are read at once."""
    found: list[list[Hit]] = []
    for hit in hits:
        if found and len(found[-1]) < _TOGETHER and found[-1][0][0].file is hit[0].file:
            found[-1].append(hit)
        else:
            found.append([hit])
    return found


def _first(key: RowKey) -> tuple[bool, OrderValue]:
    """Return what keys are sorted by: null is first."""
    return key.order[0] is not None, key.order[0]


def _within(bound: Bound, firsts: Sequence[tuple[bool, OrderValue]], keys: Sequence[RowKey]) -> Sequence[RowKey]:
    """Return the keys whose first part may be within a bound of the first key column."""
    start = 0 if bound.nulls or bound.lower is None else bisect_left(firsts, (True, bound.lower))
    return keys[start:] if bound.upper is None else keys[start : bisect_right(firsts, (True, bound.upper))]
