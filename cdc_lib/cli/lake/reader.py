"""Imports the modules that read the lake without Spark, which are an optional dependency."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from cdc_lib.errors import ConfigError


def lake_reader(module: str) -> Any:
    """Import a module of ``cdc_lib.lake`` that needs pyiceberg; other commands must work without it.

    Args:
        module: its name in that folder.

    Raises:
        ConfigError: pyiceberg is not installed.
    """
    return _imported(f"cdc_lib.lake.{module}")


def key_reader(module: str) -> Any:
    """Import a module of ``cdc_lib.read``.

    Args:
        module: its name in that folder.

    Raises:
        ConfigError: pyiceberg is not installed.
    """
    return _imported(f"cdc_lib.read.{module}")


def serving(module: str) -> Any:
    """Import a module of ``cdc_lib.serve``.

    Args:
        module: its name in that folder.

    Raises:
        ConfigError: pyiceberg is not installed.
    """
    return _imported(f"cdc_lib.serve.{module}")


def _imported(module: str) -> Any:
    if importlib.util.find_spec("pyiceberg") is None:
        raise ConfigError(
            "reading the lake needs pyiceberg, which is not installed", hint='pip install "lakecdc[read]"'
        )
    return importlib.import_module(module)
