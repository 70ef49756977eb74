"""Keys as people write them: on a command line, or in an address."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.read.keys import kind_of


def parse_parts(schema: pa.Schema, key: Sequence[str], texts: Sequence[str]) -> tuple[Any, ...]:
    """Return the parts of a key, or its first parts.

    Args:
        schema: of the table.
        key: names of the key's columns.
        texts: one for each part: numbers, dates and times as in ISO 8601, bytes as hex digits. A time of a column with time zone is
            UTC if it has none.

    Raises:
        ConfigError: a text is not a value of its column.
    """
    if len(texts) > len(key):
        raise ConfigError(f"the key has {counted(len(key), 'part')}, not {len(texts)}", hint=f"It is {', '.join(key)}.")
    return tuple(_part(schema.field(name), text) for name, text in zip(key, texts, strict=False))


def parse_key(schema: pa.Schema, key: Sequence[str], text: str) -> tuple[Any, ...]:
    """Return a key that is one text: the value of the first column, or a JSON list of several.

    Raises:
        ConfigError: it is not a key.
    """
    if not (text.startswith("[") and len(key) > 1):
        return parse_parts(schema, key, [text])
    try:
        parts = json.loads(text, parse_float=str)
    except ValueError as error:
        raise ConfigError(f"{text} is not a JSON list", hint='For example ["de", 42].') from error
    return parse_parts(schema, key, [part if isinstance(part, str) else json.dumps(part) for part in parts])


def _part(column: pa.Field, text: str) -> Any:
    parse, expected = _PARSERS[kind_of(column.type)]
    try:
        return parse(text)
    except (ValueError, InvalidOperation) as error:
        raise ConfigError(f"key column {column.name} takes {expected}, not {text!r}", hint="") from error


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def parse_instant(text: str) -> datetime:
    """Return a time in ISO 8601; it is UTC if it has no time zone.

    Raises:
        ValueError: it is not a time.
    """
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is not None:
        raise ValueError(text)
    return time


_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "integer": (int, "a whole number"),
    "decimal": (Decimal, "a number"),
    "float": (float, "a number"),
    "boolean": (_boolean, "true or false"),
    "date": (date.fromisoformat, "a date such as 2026-01-31"),
    "timestamp": (_time, "a time without zone, such as 2026-01-31T12:00:00"),
    "instant": (parse_instant, "a time such as 2026-01-31T12:00:00"),
    "text": (str, "text"),
    "binary": (bytes.fromhex, "hex digits"),
}
