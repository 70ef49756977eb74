"""A binlog file that ends without saying so: its server crashed there, or its end is missing."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.position import Position


@dataclass(frozen=True, slots=True)
class Unclosed:
    """A file without a ROTATE or STOP at its end.

    Args:
        end: of what there is of it.
        follower: the next file.
    """

    end: Position
    follower: str
