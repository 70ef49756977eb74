"""One thing that was looked at, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        level: whether it is fine.
        what: what was found.
        hint: the statement or step that mends it; empty when it is fine.
    """

    level: Level
    what: str
    hint: str = ""
