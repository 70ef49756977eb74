"""What a path of HBase's REST server asks for: ``<row>[/<columns>[/<times>]]?v=`` and ``<prefix>*?limit=``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from cdc_lib.errors import ConfigError

MOST_ROWS = 100_000
"""Rows of a scan at most: an answer is made in memory."""

_DIGITS = 19
"""Numbers with fewer digits fit into the 64 bits that libraries take."""

_SCAN_OPTIONS = ("startrow", "endrow", "column", "limit", "reversed", "cut")


@dataclass(frozen=True, slots=True)
class RowPath:
    """A row.

    Args:
        key: the row key.
        columns: families and columns; None for all.
        times: first timestamp, and the first one after the range, in milliseconds; None for all.
        versions: how many versions at most.
    """

    key: bytes
    columns: tuple[bytes, ...] | None
    times: tuple[int, int] | None
    versions: int

    def has(self, timestamp: int) -> bool:
        """Whether a timestamp is in the range."""
        return self.times is None or self.times[0] <= timestamp < self.times[1]


@dataclass(frozen=True, slots=True)
class HBaseScan:
    """A range of rows.

    Args:
        prefix: what row keys begin with; None for all.
        start: the first row key; None for the beginning.
        stop: the row key after the last one; None for the end.
        columns: as in :class:`RowPath`.
        limit: how many rows at most; None for all.
        reverse: whether the last row comes first.
    """

    prefix: bytes | None
    start: bytes | None
    stop: bytes | None
    columns: tuple[bytes, ...] | None
    limit: int | None
    reverse: bool


def parse_path(parts: Sequence[bytes], versions: str | None) -> RowPath:
    """Return the row that a path names.

    Args:
        parts: of the path after the table, not decoded.
        versions: the parameter ``v``; None for one version.

    Raises:
        ConfigError: it is not such a path.
    """
    if not 1 <= len(parts) <= 3 or not parts[0]:
        raise ConfigError(
            "the path is not table/row/columns/timestamps", hint="Columns and timestamps may be left out."
        )
    columns = tuple(map(unquote_to_bytes, parts[1].split(b","))) if len(parts) > 1 and parts[1] else None
    times = _times(unquote_to_bytes(parts[2]).decode()) if len(parts) > 2 else None
    return RowPath(unquote_to_bytes(parts[0]), columns, times, 1 if versions is None else _count("v", versions))


def parse_scan(prefix: bytes, options: Iterable[tuple[str, str]]) -> HBaseScan:
    """Return the rows that a scan asks for.

    Args:
        prefix: what is before the ``*``.
        options: names and values of the request's parameters.

    Raises:
        ConfigError: an option is not known, or is no value.
    """
    given = list(options)
    if unknown := [name for name, _ in given if name not in _SCAN_OPTIONS]:
        raise ConfigError(
            f"a scan has no parameter {unknown[0]}", hint=f"Its parameters are {', '.join(_SCAN_OPTIONS)}."
        )
    last = dict(given)
    if prefix and ("startrow" in last or "endrow" in last):
        raise ConfigError("a scan has either a prefix or rows at which it starts and ends", hint="Leave out one.")
    columns = tuple(one.encode() for name, value in given if name == "column" for one in value.split(","))
    limit = _count("limit", last["limit"]) if "limit" in last else None
    if limit is not None and limit > MOST_ROWS:
        raise too_many_rows()
    start, stop = (last[name].encode() if last.get(name) else None for name in ("startrow", "endrow"))
    return HBaseScan(prefix or None, start, stop, columns or None, limit, last.get("reversed") == "true")


def too_many_rows() -> ConfigError:
    """Return the error of a scan whose answer would be too large."""
    return ConfigError(
        f"one scan returns at most {MOST_ROWS} rows",
        hint="Give a limit, and continue with startrow after the last row.",
    )


def _times(text: str) -> tuple[int, int]:
    """Return a range of times: one time is the end of a range from the beginning."""
    first, _, second = text.partition(",")
    if not _is_number(first) or (second and not _is_number(second)):
        raise ConfigError(f"{text!r} is not a timestamp", hint="Milliseconds since 1970: one, or two with a comma.")
    return (int(first), int(second)) if second else (0, int(first))


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < _DIGITS


def _count(name: str, text: str) -> int:
    if not _is_number(text) or int(text) < 1:
        raise ConfigError(f"{name} is a number from 1 on, and not {text!r}", hint="For example 10.")
    return int(text)
