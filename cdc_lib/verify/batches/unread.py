"""Events of a window that the second decoder could not read."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from cdc_lib.model.decoded_event import UNPLACED, DecodedEvent
from cdc_lib.verify.batches.places import Place


@dataclass(slots=True)
class UnreadEvents:
    """Which events were not read, and why. An event without a place means all of its transaction."""

    _begins: list[tuple[int, int]] = field(default_factory=list)
    _events: dict[tuple[int, int], str] = field(default_factory=dict)
    _transactions: dict[tuple[int, int], str] = field(default_factory=dict)

    @property
    def began(self) -> tuple[int, int]:
        """Where the current transaction began."""
        return self._begins[-1] if self._begins else (0, 0)

    def begin(self, event: DecodedEvent) -> None:
        """Take the begin of a transaction."""
        self._begins.append((event.file, event.offset))

    def add(self, event: DecodedEvent) -> None:
        """Take an event that was not read."""
        if event.offset == UNPLACED:
            self._transactions[self.began] = event.why
        else:
            self._events[event.file, event.offset] = event.why

    def why(self, place: Place) -> str:
        """Return why a change was not read; empty if it was."""
        index = bisect_right(self._begins, place[:2]) - 1
        began = self._begins[index] if index >= 0 else (0, 0)
        return self._events.get(place[:2]) or self._transactions.get(began, "")
