"""Binlog that is not drained yet."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.pace import duration

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much binlog is not drained yet, and how long it takes until all of it is.

    Args:
        bytes: between the drain cursor and the end of the binlog.
        seconds: to drain them at the rate of the last backlog, from run to run; None if that is unknown.
    """

    bytes: int
    seconds: float | None

    def __str__(self) -> str:
        """Say it in a line of a log."""
        size, unit = float(self.bytes), 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        text = f"{size:.{1 if unit else 0}f} {_UNITS[unit]} of binlog are not drained"
        if self.seconds is None:
            return text
        return f"{text}, about {duration(self.seconds)} at the rate of the last backlog"
