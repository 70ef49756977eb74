"""The base of all sections of a source file."""

from __future__ import annotations

import os
import re
from datetime import UTC, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, StringConstraints

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_DURATION = re.compile(r"^(\d{1,6})(ms|[smhd])$")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Section(BaseModel):
    """A section of a source file: unknown keys are errors, and values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


_AIRFLOWS = ("AIRFLOW__", "AIRFLOW_CONN_")
"""How variables begin that hold Airflow's own keys and passwords: who writes a source file need not be who runs Airflow."""


PREFIXES = "CDC_VARIABLES"
"""Variable of the worker: how the names begin that a source file may read, with commas between; unset for all."""


def why_withheld(name: str) -> str:
    """Return why a source file may not take a variable; empty if it may."""
    if name.startswith(_AIRFLOWS):
        return f"{name} is Airflow's own: a source file takes no variable AIRFLOW__… or AIRFLOW_CONN_…"
    prefixes = tuple(filter(None, (one.strip() for one in os.environ.get(PREFIXES, "").split(","))))
    if prefixes and not name.startswith(prefixes):
        return f"a source file takes no variable {name} here: {PREFIXES} allows those that begin with {' or '.join(prefixes)}"
    return ""


def _allowed(name: str) -> str:
    if why := why_withheld(name):
        raise ValueError(why)
    return name


VariableName = Annotated[str, StringConstraints(pattern=re.compile(_VARIABLE)), AfterValidator(_allowed)]
"""Name of an environment variable; the secret itself is never in a file."""

Text = Annotated[str, BeforeValidator(_as_text)]
"""A setting of another program: text that YAML may have parsed as a number or boolean."""


def zone_of(name: str) -> tzinfo:
    """Return the time zone of a :data:`TimeZoneName`."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _known_zone(name: str) -> str:
    try:
        zone_of(name)
    except (KeyError, ValueError, OSError) as error:  # not found, no name, a folder of the database
        raise ValueError("no time zone of the IANA database, such as Europe/Berlin") from error
    return name


TimeZoneName = Annotated[str, AfterValidator(_known_zone)]
"""Name of a time zone."""


def duration(value: object) -> timedelta:
    """Parse a duration.

    Raises:
        ValueError: it is not a number with its unit.
    """
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a duration is a number and ms, s, m, h or d: 500ms, 60s, 90m, 36h, 7d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _from_duration(value: timedelta) -> str:
    if not value:
        return "0s"
    units = reversed(_UNITS.items())
    name, unit = next((name, unit) for name, words in units if not value % (unit := timedelta(**{words: 1})))
    return f"{value // unit}{name}"


Duration = Annotated[timedelta, BeforeValidator(duration), PlainSerializer(_from_duration, when_used="json")]
"""``500ms``, ``60s``, ``90m``, ``36h``, ``7d``."""


def a_second_at_least(value: timedelta) -> timedelta:
    """Refuse less than a second: the driver takes whole seconds, and a keepalive would be sent all the time."""
    if value < timedelta(seconds=1):
        raise ValueError("must be 1s or longer")
    return value


def at_most(limit: timedelta) -> AfterValidator:
    """Return a validator for a maximum duration."""

    def check(value: timedelta) -> timedelta:
        if value > limit:
            raise ValueError(f"must be {_from_duration(limit)} or shorter")
        return value

    return AfterValidator(check)
