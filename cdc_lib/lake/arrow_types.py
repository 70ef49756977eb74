"""The types of lake columns in Arrow, and values of them as people and keys write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_lib.model.lake_types import decimal_of, iceberg_name

_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
}
"""By Iceberg's names."""
_FIXED = re.compile(r"fixed\[(\d+)\]")


def arrow_of(iceberg: str) -> pa.DataType:
    """Return the Arrow type of one of Iceberg's that has no parts.

    Raises:
        KeyError: there is none.
    """
    if digits := decimal_of(iceberg):
        return pa.decimal128(*digits)
    match = _FIXED.fullmatch(iceberg)
    return pa.binary(int(match[1])) if match else _TYPES[iceberg]


def arrow_type(lake_type: str) -> pa.DataType:
    """Return the Arrow type of a column, by Spark's name of its type."""
    return arrow_of(iceberg_name(lake_type))


@dataclass(frozen=True, slots=True)
class ValueKind:
    """What columns of some Arrow types hold.

    Args:
        holds: whether a type is one of them.
        python: types of a caller's values.
        given: what a caller gives, for messages.
        parse: returns the value that a text means; raises ValueError or ArithmeticError if it means none.
        written: such texts, for messages.
        but: types that Python derives from them.
        zoned: whether a caller's times have a time zone; None for other values.
    """

    holds: Callable[[pa.DataType], bool]
    python: tuple[type, ...]
    given: str
    parse: Callable[[str], Any]
    written: str
    but: tuple[type, ...] = (bool,)
    zoned: bool | None = None

    def takes(self, value: Any) -> bool:
        """Whether a caller's value is one."""
        is_type = isinstance(value, self.python) and not isinstance(value, self.but)
        return is_type and (self.zoned is None or (value.tzinfo is not None) == self.zoned)


def kind_of(of: pa.DataType) -> ValueKind:
    """Return what a column of a type holds."""
    return next(kind for kind in _KINDS if kind.holds(of))


def is_exact_number(of: pa.DataType) -> bool:
    """Whether a type is that of whole numbers or of decimals."""
    return bool(pa.types.is_integer(of) or pa.types.is_decimal(of))


def parse_instant(text: str) -> datetime:
    """Return a time in ISO 8601; it is UTC if it has no time zone.

    Raises:
        ValueError: it is not a time.
    """
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is not None:
        raise ValueError(text)
    return time


def _none(text: str) -> None:
    raise ValueError(text)


_KINDS = (
    ValueKind(pa.types.is_boolean, (bool,), "a bool", _boolean, "true or false", but=()),
    ValueKind(pa.types.is_integer, (int,), "an int", int, "a whole number"),
    ValueKind(pa.types.is_floating, (int, float), "a float", float, "a number"),
    ValueKind(pa.types.is_decimal, (int, Decimal), "a Decimal or an int", Decimal, "a number"),
    ValueKind(pa.types.is_date, (date,), "a date", date.fromisoformat, "a date such as 2026-01-31", but=(datetime,)),
    ValueKind(
        lambda of: pa.types.is_timestamp(of) and of.tz is None,
        (datetime,),
        "a datetime without a time zone",
        _time,
        "a time without zone, such as 2026-01-31T12:00:00",
        zoned=False,
    ),
    ValueKind(
        pa.types.is_timestamp,
        (datetime,),
        "a datetime with a time zone",
        parse_instant,
        "a time such as 2026-01-31T12:00:00",
        zoned=True,
    ),
    ValueKind(pa.types.is_string, (str,), "a str", str, "text"),
    ValueKind(pa.types.is_time, (), "nothing: a time is no key", _none, "nothing: a time is no key"),
    ValueKind(
        lambda of: pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of),
        (bytes, bytearray),
        "bytes",
        bytes.fromhex,
        "hex digits",
    ),
)
