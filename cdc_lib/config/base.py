"""What every section of a source file has in common."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, StringConstraints

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_DURATION = re.compile(r"^(\d{1,6})([smhd])$")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Section(BaseModel):
    """A part of a source file: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


VariableName = Annotated[str, StringConstraints(pattern=re.compile(_VARIABLE))]
"""Name of an environment variable; the secret itself never stands in a file."""

Text = Annotated[str, BeforeValidator(_as_text)]
"""A text that YAML may have read as a number or a truth value: settings of other programs."""


def _as_duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration is a number and s, m, h or d: 60s, 90m, 36h, 7d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _from_duration(value: timedelta) -> str:
    seconds = int(value.total_seconds())
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    name, size = next((name, size) for name, size in units if seconds % size == 0)
    return f"{seconds // size}{name}"


Duration = Annotated[timedelta, BeforeValidator(_as_duration), PlainSerializer(_from_duration, when_used="json")]
"""``60s``, ``90m``, ``36h``, ``7d``."""
