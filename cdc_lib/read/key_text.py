"""Keys as people write them: on a command line, or in an address."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cdc_lib.errors import ConfigError
from cdc_lib.lake.arrow_types import kind_of
from cdc_lib.model.pace import counted


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
    kind = kind_of(column.type)
    try:
        return kind.parse(text)
    except (ValueError, ArithmeticError) as error:
        raise ConfigError(f"key column {column.name} takes {kind.written}, not {text!r}", hint="") from error
