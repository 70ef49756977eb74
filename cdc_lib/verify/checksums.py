"""Compares checksums of parts of a table from both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Sum(NamedTuple):
    """Number of rows in a part, and the sum of their hashes."""

    rows: int
    hashes: int


NOTHING = Sum(0, 0)


class RangeBucket(NamedTuple):
    """A hash bucket of the keys in a range: numbers of the range and the bucket."""

    range: int
    bucket: int


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row in a list: its identifying name, its hash, its number of copies, and the texts of its key."""

    name: str
    hash: int
    copies: int = 1
    key: tuple[str, ...] = ()


def added(sums: Iterable[tuple[int, Sum]]) -> dict[int, Sum]:
    """Return the total of each number's sums."""
    totals: dict[int, Sum] = {}
    for number, one in sums:
        before = totals.get(number, NOTHING)
        totals[number] = Sum(before.rows + one.rows, before.hashes + one.hashes)
    return {number: total for number, total in totals.items() if total != NOTHING}


def unequal(source: Mapping[int, Sum], lake: Mapping[int, Sum]) -> list[int]:
    """Return the numbers whose sums differ, in order; a missing sum is empty."""
    numbers = source.keys() | lake.keys()
    return sorted(number for number in numbers if source.get(number, NOTHING) != lake.get(number, NOTHING))


def of_ranges(parts: Mapping[RangeBucket, Sum]) -> dict[int, Sum]:
    """Return the sums of whole ranges."""
    return added((part.range, one) for part, one in parts.items())


def of_buckets(parts: Mapping[RangeBucket, Sum], number: int) -> dict[int, Sum]:
    """Return the sums of one range's buckets."""
    return {part.bucket: one for part, one in parts.items() if part.range == number}


def suspects(source: Iterable[ListedRow], lake: Iterable[ListedRow]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows that differ between two lists, and their keys, in order.

    Several entries with one name are copies of one row.
    """
    seen: dict[str, tuple[Sum, Sum]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for side, rows in enumerate((source, lake)):
        for row in rows:
            sums = list(seen.get(row.name, (NOTHING, NOTHING)))
            before = sums[side]
            sums[side] = Sum(before.rows + row.copies, before.hashes + row.copies * row.hash)
            seen[row.name] = (sums[0], sums[1])
            keys[row.name] = row.key
    return {name: keys[name] for name in sorted(seen) if seen[name][0] != seen[name][1]}
