"""Windows, for tests."""

from __future__ import annotations

from cdc_lib.model.window import Window


def follows(later: Window, earlier: Window) -> bool:
    """Whether one window starts where another stops."""
    return (later.source, later.epoch, later.start) == (earlier.source, earlier.epoch, earlier.stop)
