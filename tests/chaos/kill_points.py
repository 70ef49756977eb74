"""Which labelled points a step has, and which of them is next: the one where the fewest were killed so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from tests.chaos.labelled_merge import CHORES, COMMITS, TIDYING


def _around(step: str, *deeds: str) -> list[str]:
    return [f"{step}: {when} {deed}" for deed in deeds for when in ("before", "after")]


PLACES: dict[str, list[str]] = {
    "plan": _around("plan", "the swap of the drain cursor", "the swap of the lake cursor"),
    "drain": [
        *_around(
            "drain", "the manifest of a window", "the manifest of a chunk", "a part of a window", "a part of a chunk"
        ),
        "drain: in the middle of a part of a window",
        "drain: in the middle of a part of a chunk",
        "drain: at any moment",
    ],
    "ack_drain": _around("ack_drain", "the swap of the drain cursor"),
    "plan_merge": _around("plan_merge", "the swap of the lake cursor"),
    "merge": [*_around("merge", *COMMITS, *TIDYING, "the cut"), "merge: at any moment"],
    "ack_lake": _around("ack_lake", "the swap of the lake cursor"),
    "rewind": _around("rewind", "the swap of the drain cursor"),
    "release": _around("release", "the swap of the drain cursor"),
    "again": _around("again", "the swap of the drain cursor"),
    "maintain": [*_around("maintain", *CHORES), "maintain: at any moment"],
    "backfill": [*_around("backfill", *(deed for deed in COMMITS if "columns" not in deed)), "backfill: at any moment"],
    "gc": _around("gc", "the removal of a manifest", "the removal of what no manifest names"),
}
"""All points, by step."""


class Killed:
    """Counts where steps were killed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """All kills."""
        return self.counts.total()

    def next(self, step: str, random: Random, without: Iterable[str] = ()) -> str:
        """Choose a point of a step; one that was aimed at and never reached becomes as unlikely as one that was hit."""
        left = [label for label in PLACES[step] if not any(word in label for word in without)]
        least = min(self.counts[label] + self._missed[label] for label in left)
        return random.choice([label for label in left if self.counts[label] + self._missed[label] <= least + 1])

    def note(self, aimed: str, hit: str | None) -> None:
        """Count what came of an aim."""
        if hit is None:
            self._missed[aimed] += 1
        else:
            self.counts[hit] += 1

    def table(self) -> str:
        """Return the counts of all points as text."""
        labels = [label for step in PLACES.values() for label in step]
        width = max(map(len, labels))
        lines = [f"{label:<{width}} {self.counts[label]:5d}" for label in labels]
        return "\n".join([*lines, f"{'all':<{width}} {self.total:5d}"])
