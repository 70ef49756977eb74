"""What tests ask of the locations of lake tables."""

from __future__ import annotations

from cdc_lib.lake.location import paths_of


def overlap(one: str, other: str) -> bool:
    """Whether one of two locations is the other or lies in it, as far as is known: in doubt it does."""
    return any(
        first.startswith(second) or second.startswith(first)
        for first, second in zip(paths_of(one), paths_of(other), strict=True)
    )
