"""In one word how a source is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from cdc_lib.model.finding import Finding
from cdc_lib.status.cut_facts import CutFacts, rows_between
from cdc_lib.status.holdings import Holdings

SourceState = Literal["failed", "attention", "new", "catching_up", "in_step", "unreachable", "reading"]
"""Something is wrong that stays until somebody acts; something wants a look; nothing was planned or drained yet; the lake lacks what is planned or
drained; the lake has all that was planned; nobody can say, because the store or the source file cannot be read; the store is being read."""

WORST_FIRST: tuple[SourceState, ...] = (
    "unreachable",
    "failed",
    "attention",
    "reading",
    "catching_up",
    "new",
    "in_step",
)
"""The order of a list of sources."""


def state_of(held: Holdings) -> SourceState:
    """Return the state of a source."""
    levels = {finding.level for finding in _bad(held.findings)}
    if "error" in levels:
        return "failed"
    if levels:
        return "attention"
    if held.waiting:
        return "catching_up"
    return "new" if held.drain is None or held.drain.has_begun_only else "in_step"


def _bad(findings: Iterable[Finding]) -> Iterable[Finding]:
    return (finding for finding in findings if finding.level != "ok")


def rows_per_second(cuts: tuple[CutFacts, ...]) -> float | None:
    """Return how many rows a second the merges of the last cuts brought; None of fewer than two."""
    if len(cuts) < 2:
        return None
    seconds = (cuts[-1].at - cuts[0].at).total_seconds()
    return rows_between(cuts[0], cuts[-1]) / seconds if seconds > 0 else None
