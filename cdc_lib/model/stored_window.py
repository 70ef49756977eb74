"""A window whose batch is stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.position import Point


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """One window whose manifest is stored.

    Args:
        key: key of the manifest.
        start: first point in the window.
        stop: first point after the window.
        modified: when the manifest was written, by the store's clock.
    """

    key: str
    start: Point
    stop: Point
    modified: datetime
