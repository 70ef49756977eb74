"""Values of the forms of runs, which templates hand to operators as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cdc_lib.errors import ConfigError

TABLES: dict[str, Any] = {"type": "array", "items": {"type": "string", "minLength": 1}}
"""Schema of a list of tables or patterns."""


def listed(tables: Sequence[str] | str) -> list[str]:
    """Return a list of patterns, which a template gives as JSON.

    Raises:
        ConfigError: it is no list of texts.
    """
    try:
        given = json.loads(tables) if isinstance(tables, str) else list(tables)
    except ValueError:
        given = None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ConfigError(f"{tables!r} is not a list of texts", hint='Write it as ["shop.orders", "shop.c*"].')
    return given


def is_on(value: bool | str) -> bool:
    """Whether a checkbox is on; a template gives it as text.

    Raises:
        ConfigError: it is neither on nor off.
    """
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{value!r} is neither true nor false", hint="Give true or false.")
    return text == "true"
