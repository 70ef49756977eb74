"""The key of a lake table, and what a caller gives for it.

A key part is compared as an *order value*: a number, bytes (text as UTF-8, compared byte by byte) or None. Iceberg's bounds,
Parquet's statistics and the callers' keys all become order values. None is a part that is null in the lake, as invalid dates are;
it comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_lib.apply.key_rows import OrderValue, RowKey
from cdc_lib.errors import ConfigError
from cdc_lib.lake.arrow_types import kind_of
from cdc_lib.model.pace import counted
from cdc_lib.read.columns import ReadColumn

_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoSuchKey(Exception):
    """A value has the right type, and the column cannot hold it: no row has this key."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The key of a table.

    Args:
        columns: in the order of the key.
        table: name of the table, for errors.
    """

    columns: tuple[ReadColumn, ...]
    table: str

    def parse(self, key: Any, *, prefix: bool = False) -> RowKey:
        """Return a caller's key.

        Args:
            key: the value of a single column, a tuple in the order of the key, or a dict by the columns' names.
            prefix: whether the last parts may be left out.

        Raises:
            ConfigError: it is not a key of this table; names the column.
            NoSuchKey: no row can have it.
        """
        parts = self._parts(key)
        if not 0 < len(parts) <= len(self.columns) or (len(parts) < len(self.columns) and not prefix):
            raise self._refused(f"a key has {counted(len(self.columns), 'part')}, not {len(parts)}")
        order = tuple(self._order_value(column, part) for column, part in zip(self.columns, parts, strict=False))
        return RowKey(order, tuple(map(_scalar, self.columns, parts)))

    def _parts(self, key: Any) -> tuple[Any, ...]:
        if isinstance(key, Mapping):
            names = [column.name for column in self.columns]
            if unknown := [name for name in key if name not in names]:
                raise self._refused(f"{unknown[0]} is not a column of the key")
            given = [name for name in names if name in key]
            if given != names[: len(given)]:
                raise self._refused(f"the key's column {next(name for name in names if name not in key)} is missing")
            return tuple(key[name] for name in given)
        if isinstance(key, Sequence) and not isinstance(key, str | bytes | bytearray):
            return tuple(key)
        return (key,)

    def _order_value(self, column: ReadColumn, value: Any) -> OrderValue:
        if value is None:
            return None
        kind = kind_of(column.type)
        if not kind.takes(value):
            raise self._refused(
                f"key column {column.name} takes {kind.given}, and {type(value).__name__} is given",
                column=column.name,
            )
        return order_value(column.type, value)

    def _refused(self, message: str, **context: str) -> ConfigError:
        shown = ", ".join(f"{column.name} ({column.type})" for column in self.columns)
        return ConfigError(message, hint=f"The key is {shown}.", table=self.table, **context)


def order_value(of: pa.DataType, value: Any) -> OrderValue:
    """Return a Python value as an order value.

    Raises:
        NoSuchKey: the type cannot hold it.
    """
    if pa.types.is_integer(of):
        least = -(1 << (of.bit_width - 1))
        if not least <= value < -least:
            raise NoSuchKey
        return int(value)
    if pa.types.is_decimal(of):
        return _unscaled(of, Decimal(value))
    if pa.types.is_date(of):
        return int((value - _EPOCH_DAY).days)
    if pa.types.is_timestamp(of):
        since = (value if of.tz else value.replace(tzinfo=UTC)) - _EPOCH
        return int((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    if isinstance(value, str):
        return _utf8(value)
    return bytes(value) if isinstance(value, bytes | bytearray) else _number(of, value)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise NoSuchKey from error


def _number(of: pa.DataType, value: float) -> int | float:
    """Return the order value of a bool or a float; a FLOAT column holds fewer digits than Python's."""
    if pa.types.is_boolean(of):
        return int(value)
    held = float(pa.scalar(float(value), of).as_py())
    if held != value:
        raise NoSuchKey
    return held + 0.0  # minus zero equals zero


def _unscaled(of: pa.DataType, value: Decimal) -> int:
    if not value.is_finite():
        raise NoSuchKey
    sign, digits, exponent = value.as_tuple()
    number, shift = int("".join(map(str, digits))), int(exponent) + of.scale
    if shift < 0 and number % 10**-shift:
        raise NoSuchKey
    unscaled = int(number * 10**shift if shift >= 0 else number // 10**-shift)
    if len(str(unscaled)) > of.precision:
        raise NoSuchKey
    return -unscaled if sign else unscaled


def _scalar(column: ReadColumn, value: Any) -> pa.Scalar:
    if value is None:
        return pa.scalar(None, column.type)
    if pa.types.is_floating(column.type):
        return pa.scalar(float(value) + 0.0, column.type)
    return pa.scalar(Decimal(value) if pa.types.is_decimal(column.type) else value, column.type)
