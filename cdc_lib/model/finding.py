"""The result of one check, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "info", "warning", "unknown", "error"]
"""info: something is not checked, or only in part; unknown: a check did not end in its time."""


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

    @property
    def is_bad(self) -> bool:
        """Whether nobody can say that a run works."""
        return self.level in ("unknown", "error")
