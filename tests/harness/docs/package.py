"""This project as pip installs it: a wheel, or its metadata alone."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME = "lakecdc"


def wheel(folder: Path) -> zipfile.ZipFile:
    """Build a wheel of this project into an empty folder, and open it."""
    program = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return zipfile.ZipFile(made)


def installed(folder: Path) -> Path:
    """Return a ``site-packages`` with all that is installed here, and this project from its wheel.

    Python is started with ``-S`` and ``PYTHONPATH`` set to it, so that it sees nothing else.
    """
    packages = folder / "site-packages"
    packages.mkdir(parents=True)
    for name in ("purelib", "platlib"):
        for one in Path(sysconfig.get_path(name)).iterdir():
            there = packages / one.name
            if not one.name.startswith((NAME, f"_{NAME}")) and not there.exists():
                there.symlink_to(one)
    (folder / "wheel").mkdir()
    with wheel(folder / "wheel") as made:
        made.extractall(packages)
    return packages


def metadata_path(folder: Path) -> str:
    """Return what to add to ``PYTHONPATH`` so that the entry points of pyproject.toml are found: nothing if they are."""
    here = {point.group for point in distribution(NAME).entry_points}
    if {"apache_airflow_provider", "airflow.plugins"} <= here:
        return ""
    return metadata(folder)


def metadata(folder: Path) -> str:
    """Return a folder with the metadata that pip would install, for an environment without this project."""
    (folder / "wheel").mkdir(parents=True)
    with wheel(folder / "wheel") as made:
        made.extractall(folder, [name for name in made.namelist() if ".dist-info/" in name])
    return os.fspath(folder)
