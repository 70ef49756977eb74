"""Cron expressions of five fields, checked without a scheduler at hand."""

from __future__ import annotations

import re

PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@yearly"})

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_ITEM = re.compile(r"^(?:\*|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>[1-9]\d*))?$")


def problem(expression: str) -> str | None:
    """Say what is wrong with a cron expression, or None."""
    if expression in PRESETS:
        return None
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        return f"a cron expression has five fields, this one {len(fields)}"
    for text, (name, least, greatest, names) in zip(fields, _FIELDS, strict=True):
        for item in text.split(","):
            if not _is_item(item, least, greatest, names):
                return f"{item!r} is no {name} of a cron expression ({least} to {greatest}, *, */n, a-b)"
    return None


def _is_item(item: str, least: int, greatest: int, names: tuple[str, ...]) -> bool:
    match = _ITEM.match(item)
    if match is None:
        return False
    low = _number(match["low"], least, names) if match["low"] else least
    high = _number(match["high"], least, names) if match["high"] else low
    return low is not None and high is not None and least <= low <= high <= greatest


def _number(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text.lower() in names:
        return names.index(text.lower()) + least
    return int(text) if text.isdigit() else None
