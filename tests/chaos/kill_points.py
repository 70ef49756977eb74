"""The kill points of each step; the next kill goes to a point with the fewest kills so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from tests.chaos.labelled_merge import CHORES, COMMITS, TIDYING


def _around(step: str, *actions: str) -> list[str]:
    return [f"{step}: {when} {action}" for action in actions for when in ("before", "after")]


KILL_POINTS: dict[str, list[str]] = {
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
    "resume": _around("resume", "the swap of the drain cursor"),
    "resnapshot": _around("resnapshot", "the swap of the drain cursor"),
    "maintain": [*_around("maintain", *CHORES), "maintain: at any moment"],
    "backfill": [
        *_around("backfill", *(action for action in COMMITS if "columns" not in action and "key" not in action)),
        "backfill: at any moment",
    ],
    "erase": [
        *_around("erase", "the writing of the rows", "the commit of the rows", "the removal of old snapshots"),
        *_around(
            "erase", "the manifest of a window", "the manifest of a chunk", "a part of a window", "a part of a chunk"
        ),
        *_around("erase", "the removal of what no manifest names", "an erasure", "the cut"),
        "erase: at any moment",
    ],
    "gc": _around("gc", "the removal of a manifest", "the removal of what no manifest names"),
}
"""All points, by step."""


class Killed:
    """Counts the kills at each point."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """All kills."""
        return self.counts.total()

    def next(self, step: str, random: Random, without: Iterable[str] = ()) -> str:
        """Choose a point of a step; a point that was chosen but not reached counts like a kill."""
        labels = [label for label in KILL_POINTS[step] if not any(word in label for word in without)]
        least = min(self.counts[label] + self._missed[label] for label in labels)
        return random.choice([label for label in labels if self.counts[label] + self._missed[label] <= least + 1])

    def note(self, aimed: str, hit: str | None) -> None:
        """Count a kill, or a chosen point that was not reached."""
        if hit is None:
            self._missed[aimed] += 1
        else:
            self.counts[hit] += 1

    def table(self) -> str:
        """Return the counts of all points as text."""
        labels = [label for step in KILL_POINTS.values() for label in step]
        width = max(map(len, labels))
        lines = [f"{label:<{width}} {self.counts[label]:5d}" for label in labels]
        return "\n".join([*lines, f"{'all':<{width}} {self.total:5d}"])
