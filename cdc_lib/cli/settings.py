"""The global options; a small module, because every call of ``cdc`` imports it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_SOURCES = Path("dags/sources")


@dataclass(frozen=True, slots=True)
class Settings:
    """The global options, which come before the command.

    Args:
        sources: folder of the source files.
        debug: whether an error shows its traceback.
    """

    sources: Path = DEFAULT_SOURCES
    debug: bool = False
