"""Locations of lake tables, for tests."""

from __future__ import annotations

from cdc_lib.lake.location import paths_of


def overlap(first: str, second: str) -> bool:
    """Whether one of two locations is equal to or inside the other; True if it is not known."""
    return any(a.startswith(b) or b.startswith(a) for a, b in zip(paths_of(first), paths_of(second), strict=True))
