"""The global options; a small module, because every call of ``cdc`` imports it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SOURCES = Path("dags/sources")


def default_sources() -> Path:
    """Return the folder of the source files if nothing names it: here, or in the home of Airflow if there is none here."""
    home = os.environ.get("AIRFLOW_HOME")
    return DEFAULT_SOURCES if not home or DEFAULT_SOURCES.is_dir() else Path(home) / DEFAULT_SOURCES


@dataclass(frozen=True, slots=True)
class Settings:
    """The global options, which come before the command.

    Args:
        sources: folder of the source files.
        debug: whether an error shows its traceback.
    """

    sources: Path = DEFAULT_SOURCES
    debug: bool = False
