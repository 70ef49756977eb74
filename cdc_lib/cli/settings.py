"""The global options; a small module, because every call of ``cdc`` imports it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SOURCES = Path("dags/sources")
_DAGS_FOLDER = re.compile(r"^dags_folder *= *(\S.*?) *$", re.MULTILINE)


def airflow_sources() -> Path | None:
    """Return the folder of the source files below Airflow's DAG files; None if no Airflow has its home here.

    Airflow's home is ``AIRFLOW_HOME``, or ``~/airflow`` if a configuration is in it; the environment goes before the configuration.
    """
    named = os.environ.get("AIRFLOW_HOME")
    home = Path(named or "~/airflow").expanduser()
    configuration = Path(os.environ.get("AIRFLOW_CONFIG") or home / "airflow.cfg").expanduser()
    if not named and not configuration.is_file():
        return None
    dags = os.environ.get("AIRFLOW__CORE__DAGS_FOLDER")
    if not dags and configuration.is_file() and (found := _DAGS_FOLDER.search(configuration.read_text())):
        dags = found[1].replace("{AIRFLOW_HOME}", str(home))
    return Path(dags or home / "dags").expanduser() / "sources"


def default_sources() -> Path:
    """Return the folder of the source files if nothing names it.

    ``AIRFLOW_HOME`` goes before a folder here, and a folder here before the home that Airflow has without that variable.
    """
    below = airflow_sources()
    if below is None or (DEFAULT_SOURCES.is_dir() and not os.environ.get("AIRFLOW_HOME")):
        return DEFAULT_SOURCES
    return below


@dataclass(frozen=True, slots=True)
class Settings:
    """The global options, which come before the command.

    Args:
        sources: folder of the source files.
        debug: whether an error shows its traceback.
    """

    sources: Path = DEFAULT_SOURCES
    debug: bool = False
