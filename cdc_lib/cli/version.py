"""``cdc version`` and ``cdc --version``."""

from __future__ import annotations

from importlib.metadata import version as installed_version

from cdc_lib.cli.output import say


def version() -> None:
    """Print the installed version.

    Example:
        cdc version
    """
    say(f"lakecdc {installed_version('lakecdc')}")
