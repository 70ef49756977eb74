"""Parses the ends of a key range as a user writes them: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime

from cdc_lib.errors import ConfigError
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.model.schema import Column, SourceType, TableSchema

InCharset = Callable[[str, str], bytes | None]
"""The bytes of a text in a character set of the server; None if it cannot represent the text."""


def bound(schema: TableSchema, text: str, option: str, in_charset: InCharset) -> tuple[str, ...]:
    """Return an end of a key range in the format of ``key_text``.

    Args:
        schema: of the table.
        text: the value of a key of one column, or a JSON list of values of the key's first columns.
        option: name of the command's option, for messages.
        in_charset: encodes text.

    Raises:
        ConfigError: the text is not a valid key.
    """
    if not can_be_chunked(schema):
        raise ConfigError(
            f"keys of {schema.name} cannot be compared in the order of the server",
            hint="A table without a key, or with ENUM, SET, BIT, FLOAT and the like in it, is read whole or by --where.",
            table=schema.name,
        )
    values = _values(text, option, schema)
    types = {column.name: column for column in schema.columns}
    columns = [types[name] for name in schema.primary_key]
    return tuple(_key_value(column, value, option, in_charset) for column, value in zip(columns, values, strict=False))


def _values(text: str, option: str, schema: TableSchema) -> list[str]:
    if not text.lstrip().startswith("["):
        return [text]
    try:
        values = json.loads(text, parse_float=str, parse_int=str)
    except ValueError:
        values = None
    key = ", ".join(schema.primary_key)
    if not isinstance(values, list) or not 1 <= len(values) <= len(schema.primary_key) or not all(
        isinstance(value, str) for value in values
    ):  # fmt: skip
        raise ConfigError(
            f"{option} {text} is not a key of {schema.name}",
            hint=f"A value, or a JSON list of the first of the key's columns ({key}) such as '[5, \"text\"]'.",
            table=schema.name,
        )
    return values


def _key_value(column: Column, value: str, option: str, in_charset: InCharset) -> str:
    text = _of_type(column.type, value, in_charset)
    if text is None:
        raise ConfigError(
            f"{option} {value!r} cannot be compared with column {column.name}: {column.type.family.bound} is",
            hint="Nothing was asked for.",
            column=column.name,
        )
    return text


def _of_type(source_type: SourceType, value: str, in_charset: InCharset) -> str | None:
    family = source_type.family
    if family.has_charset:
        encoded = in_charset(value, source_type.charset)
        return encoded.hex() if encoded is not None else None
    if family.is_date:
        return _parsed(value, _naive if family.has_fraction else date.fromisoformat)
    text = value.removeprefix("0x").lower() if family.in_hex else value
    return text if re.fullmatch(family.pattern, text) else None


def _naive(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is not None:
        raise ValueError(value)
    return parsed


def _parsed(value: str, parse: Callable[[str], date]) -> str | None:
    try:
        return str(parse(value))
    except ValueError:
        return None
