"""What else happens in a run, beside kills, crashes, cut connections and repeated tasks; a seed has some of it."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Trials:
    """Which of the further trials a run has.

    Args:
        prepared: XA transactions, which are prepared in one window and decided in another.
        rewinds: the drain cursor is moved back now and then.
        quarantine: tables at fault are set aside, and released.
        collections: batches are removed as soon as nobody needs them.
    """

    prepared: bool
    rewinds: bool
    quarantine: bool
    collections: bool

    @classmethod
    def of(cls, seed: int) -> Trials:
        """Return those of a seed: its last four bits say no to one each, so that 0 has all of them."""
        return cls(*(not seed >> bit & 1 for bit in range(4)))

    def __str__(self) -> str:
        return ", ".join(one.name for one in fields(self) if getattr(self, one.name)) or "none"
