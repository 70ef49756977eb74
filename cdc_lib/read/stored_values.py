"""Values as Parquet stores them, as Python values and as Arrow arrays of the types of a lake table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_lib.read.pages.page import BYTE_ARRAY, FIXED
from cdc_lib.read.pages.page import Value as Stored
from cdc_lib.read.values import python_value

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the table's type says whether it has a zone


@dataclass(frozen=True, slots=True)
class ValueConversion:
    """How stored values become those of a column.

    Args:
        value: returns the Python value of one that is not null.
        array: returns the array of some, of which each may be null.
    """

    value: Callable[[Any], Any]
    array: Callable[[Sequence[Stored]], pa.Array]


def conversion(physical: int, stored: pa.DataType, of: pa.DataType) -> ValueConversion | None:
    """Return how values of a file become values of a table; None if Arrow has to convert them.

    Args:
        physical: number of Parquet's type.
        stored: Arrow's type of the file's column.
        of: type of the table's column.
    """
    if pa.types.is_decimal(stored) and pa.types.is_decimal(of):
        return _decimals(physical, stored, of)
    if _is_wider(pa.types.is_signed_integer, stored, of) or _is_wider(pa.types.is_floating, stored, of):
        return ValueConversion(_same, lambda values: pa.array(values, of))
    found = next((make for holds, make in _OF_SAME_TYPE if holds(of)), None) if stored == of else None
    return None if found is None else found(of)


def _is_wider(holds: Callable[[pa.DataType], bool], stored: pa.DataType, of: pa.DataType) -> bool:
    """Whether both types are of one kind, and the second one holds all values of the first."""
    return holds(stored) and holds(of) and stored.bit_width <= of.bit_width


def _is_micros(of: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(of)) and of.unit == "us"


def _same(value: Any) -> Any:
    return value


def _text(value: bytes) -> str:
    return value.decode()


def _date(days: int) -> Any:
    try:
        return date.fromordinal(_EPOCH_DAY + days)
    except (ValueError, OverflowError):
        return python_value(pa.scalar(days, pa.date32()))


def _times(of: pa.DataType) -> Callable[[int], Any]:
    epoch = _EPOCH.replace(tzinfo=pa.scalar(0, of).as_py().tzinfo)

    def value(micros: int) -> Any:
        try:
            return epoch + timedelta(microseconds=micros)
        except OverflowError:
            return python_value(pa.scalar(micros, of))

    return value


def _decimals(physical: int, stored: pa.DataType, of: pa.DataType) -> ValueConversion | None:
    if stored.scale != of.scale or stored.precision > of.precision:
        return None
    in_bytes, exponent = physical in (BYTE_ARRAY, FIXED), f"E-{of.scale}"

    def value(unscaled: Any) -> Decimal:
        # A text is not rounded to the digits of a context.
        number = int.from_bytes(unscaled, "big", signed=True) if in_bytes else unscaled
        return Decimal(f"{number}{exponent}")

    return ValueConversion(value, lambda values: pa.array([None if one is None else value(one) for one in values], of))


_OF_SAME_TYPE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], ValueConversion]], ...] = (
    (pa.types.is_string, lambda of: ValueConversion(_text, lambda values: pa.array(values, pa.binary()).view(of))),
    (pa.types.is_binary, lambda of: ValueConversion(_same, lambda values: pa.array(values, of))),
    (pa.types.is_fixed_size_binary, lambda of: ValueConversion(_same, lambda values: pa.array(values, of))),
    (pa.types.is_boolean, lambda of: ValueConversion(_same, lambda values: pa.array(values, of))),
    (pa.types.is_date32, lambda of: ValueConversion(_date, lambda values: pa.array(values, pa.int32()).view(of))),
    (_is_micros, lambda of: ValueConversion(_times(of), lambda values: pa.array(values, pa.int64()).view(of))),
)
"""For types that files and tables have alike, how the values of each are converted."""
