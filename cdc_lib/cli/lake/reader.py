"""Imports the modules that read the lake without Spark, which are an optional dependency."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from cdc_lib.errors import ConfigError


def lake_reader(module: str) -> Any:
    """Import a module that needs pyiceberg; other commands must work without it.

    Args:
        module: its name in ``cdc_lib``, such as ``read.sql``.

    Raises:
        ConfigError: pyiceberg is not installed.
    """
    if importlib.util.find_spec("pyiceberg") is None:
        raise ConfigError(
            "reading the lake needs pyiceberg, which is not installed", hint='pip install "lakecdc[read]"'
        )
    return importlib.import_module(f"cdc_lib.{module}")
