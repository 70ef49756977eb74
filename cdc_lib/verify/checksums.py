"""Checksums of parts of a table, from both sides: which parts are not the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Sum(NamedTuple):
    """How many rows a part has, and the sum of their hashes."""

    rows: int
    hashes: int


NOTHING = Sum(0, 0)


class RangeShare(NamedTuple):
    """A part of a range: the range's number, and the share of its keys' hashes."""

    range: int
    share: int


@dataclass(frozen=True, slots=True)
class Listed:
    """One row in a list of rows: what tells it from others, its hash, how often it is there, and its key's texts."""

    name: str
    hash: int
    copies: int = 1
    key: tuple[str, ...] = ()


def added(sums: Iterable[tuple[int, Sum]]) -> dict[int, Sum]:
    """Return the sums of what has the same number."""
    found: dict[int, Sum] = {}
    for number, one in sums:
        before = found.get(number, NOTHING)
        found[number] = Sum(before.rows + one.rows, before.hashes + one.hashes)
    return {number: one for number, one in found.items() if one != NOTHING}


def unequal(source: Mapping[int, Sum], lake: Mapping[int, Sum]) -> list[int]:
    """Return the numbers whose sums are not the same, in order; what is not there is empty."""
    numbers = source.keys() | lake.keys()
    return sorted(number for number in numbers if source.get(number, NOTHING) != lake.get(number, NOTHING))


def of_ranges(parts: Mapping[RangeShare, Sum]) -> dict[int, Sum]:
    """Return the sums of whole ranges."""
    return added((part.range, one) for part, one in parts.items())


def of_shares(parts: Mapping[RangeShare, Sum], number: int) -> dict[int, Sum]:
    """Return the sums of one range's shares."""
    return {part.share: one for part, one in parts.items() if part.range == number}


def suspects(source: Iterable[Listed], lake: Iterable[Listed]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows that are not the same in two lists, and their keys, in order.

    Several entries of one name are one row that is there more than once.
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
