"""The result of one check, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "info", "warning", "error"]
"""info: something was not checked, or only in part."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Args:
        level: how serious it is.
        what: what was found.
        hint: the statement or step that fixes it; empty if there is nothing to fix.
    """

    level: Level
    what: str
    hint: str = ""
