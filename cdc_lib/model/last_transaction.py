"""The last transaction before a position, by which a server is recognized that was reverted to an earlier state."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class LastTransaction:
    """A transaction that was read.

    Args:
        position: where it begins.
        gtid: empty without one.
        digest: of its first events, with their times: another transaction of its size and GTID has another one.
        before: it is the last one before this position. A cursor that is elsewhere has another one.
    """

    position: Position
    gtid: str
    digest: int
    before: Position
