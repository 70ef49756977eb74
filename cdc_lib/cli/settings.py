"""The options that stand before a command; light, because every call of ``cdc`` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_SOURCES = Path("dags/sources")


@dataclass(frozen=True, slots=True)
class Settings:
    """The options that stand before a command.

    Args:
        sources: folder of the source files.
        debug: whether an error shows its traceback.
    """

    sources: Path = DEFAULT_SOURCES
    debug: bool = False
