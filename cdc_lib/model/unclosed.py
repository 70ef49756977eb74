"""A binlog file without an end event: its server crashed, or its end is missing."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class Unclosed:
    """A file without a ROTATE or STOP at its end.

    Args:
        end: end of the existing part.
        follower: the next file.
    """

    end: Position
    follower: str
