"""When runs begin: a check of cron expressions with five fields, without Airflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import pairwise

_PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
PRESETS = frozenset(_PRESETS)

ON_CHANGE = "on_change"
"""A schedule that is no cron expression: a run begins when the binlog has grown."""

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
    """Return what is wrong with a cron expression, or None."""
    if expression in PRESETS:
        return None
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        return f"a cron expression has five fields, this one {len(fields)}"
    for text, (name, least, greatest, names) in zip(fields, _FIELDS, strict=True):
        for item in text.split(","):
            if not _is_item(item, least, greatest, names):
                return f"{item!r} is no {name} of a cron expression ({least} to {greatest}, *, */n, a-b)"
            count, step = greatest - least + 1, int(item.partition("/")[2] or 1)
            if step > count:
                return f"{item!r}: a step of the {name} is at most {count}, because cron counts from {least} again after {greatest}"
    # Only a date can be missing in each year.
    if not fields[2].startswith("*") and longest_gap(expression) is None:
        return f"{expression!r} never comes: no year has such a day"
    return None


def _is_item(item: str, least: int, greatest: int, names: tuple[str, ...]) -> bool:
    match = _ITEM.match(item)
    if match is None:
        return False
    low = _number(match["low"], least, names) if match["low"] else least
    high = _number(match["high"], least, names) if match["high"] else low
    return low is not None and high is not None and least <= low <= greatest and least <= high <= greatest


def _number(text: str, least: int, names: tuple[str, ...]) -> int | None:
    if text.lower() in names:
        return names.index(text.lower()) + least
    return int(text) if text.isdigit() else None


_FROM, _YEARS = date(2024, 1, 1), 9
"""A leap day among them, and each date on several days of the week."""


def longest_gap(expression: str) -> timedelta | None:
    """Return the longest time between two moments of a cron expression in which :func:`problem` finds nothing.

    None when it has no two moments in nine years: a date that hardly any year has.
    """
    texts = _PRESETS.get(expression, expression).split()
    fields = zip(texts, _FIELDS, strict=True)
    minutes, hours, days, months, weekdays = (
        set(_values(text, least, greatest, names)) for text, (_, least, greatest, names) in fields
    )
    times = sorted(60 * hour + minute for hour in hours for minute in minutes)
    # As cron has it: where both days are restricted, one of them is enough.
    either = not texts[2].startswith("*") and not texts[4].startswith("*")
    gaps = [timedelta(minutes=later - earlier) for earlier, later in pairwise(times)]
    last: date | None = None
    for number in range(_YEARS * 366):
        day = _FROM + timedelta(days=number)
        of_month, of_week = day.day in days, bool({day.isoweekday(), day.isoweekday() % 7} & weekdays)
        if day.month not in months or not ((of_month or of_week) if either else (of_month and of_week)):
            continue
        if last is not None:
            gaps.append(day - last + timedelta(minutes=times[0] - times[-1]))
        last = day
    return max(gaps, default=None) if last is not None else None


def _values(text: str, least: int, greatest: int, names: tuple[str, ...]) -> Iterator[int]:
    """Yield the numbers of a checked field."""
    for item in text.split(","):
        values, _, step = item.partition("/")
        low, _, high = values.partition("-")
        start = least if low == "*" else _number(low, least, names) or 0
        # "5/15" is from 5 on; "5" alone is 5; "22-2" goes on after the greatest.
        stop = (_number(high, least, names) or 0) if high else greatest if step or low == "*" else start
        count = greatest - least + 1
        stop += count if stop < start else 0
        yield from (least + (value - least) % count for value in range(start, stop + 1, int(step or 1)))
