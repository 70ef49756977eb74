"""Ranges of keys: which files and row groups may have rows of one, and which rows are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import OrderValue
from cdc_lib.errors import ConfigError
from cdc_lib.read.bounds import GREATEST, LEAST, Bound, Point, greatest_point, least_point, point_of
from cdc_lib.read.keys import KeyColumns, NoSuchKey

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ScanRange:
    """Keys from ``start`` to ``stop``. Both may have the first parts of a key only.

    Args:
        start: no key is less; None for all keys.
        stop: no key is greater; None for all keys.
        include_stop: whether ``stop`` itself, or a key that begins with it, is in the range.
    """

    start: Point | None = None
    stop: Point | None = None
    include_stop: bool = False

    @classmethod
    def parse(cls, columns: KeyColumns, start: Any, stop: Any, *, include_stop: bool) -> ScanRange:
        """Return the range of a caller's keys; None is no limit.

        Raises:
            ConfigError: one of them is not a key of the table, or a value that its columns cannot hold.
        """
        return cls(_end(columns, start), _end(columns, stop), include_stop)

    @classmethod
    def of_prefix(cls, columns: KeyColumns, prefix: Any) -> ScanRange:
        """Return the range of the keys with these first parts; where the last part is a text or bytes, it is what that part begins with.

        Raises:
            ConfigError: as in :meth:`parse`.
        """
        start = _end(columns, prefix)
        if start is None:
            return cls()
        *parts, (rank, last) = start
        if not isinstance(last, bytes):
            return cls(start, start, include_stop=True)
        if not (held := last.rstrip(b"\xff")):  # nothing is greater than all that begins with it
            return cls(start, tuple(parts) or None, include_stop=True)
        return cls(start, (*parts, (rank, held[:-1] + bytes((held[-1] + 1,)))))

    def may_have(self, bounds: Sequence[Bound]) -> bool:
        """Whether a file or row group with these bounds may have a row of the range."""
        if self.start is not None and greatest_point(bounds)[: len(self.start)] < self.start:
            return False
        if self.stop is None:
            return True
        least = least_point(bounds)[: len(self.stop)]
        return least <= self.stop if self.include_stop else least < self.stop

    def mask(self, keys: Sequence[pa.Array]) -> Mask:
        """Return for each row whether it is in the range."""
        found = np.ones(len(keys[0]), np.bool_)
        if self.start is not None:
            found &= ~before(keys, self.start, or_equal=False)
        if self.stop is not None:
            found &= before(keys, self.stop, or_equal=self.include_stop)
        return found


def _end(columns: KeyColumns, key: Any) -> Point | None:
    if key is None:
        return None
    try:
        return point_of(columns.parse(key, prefix=True).order)
    except NoSuchKey:
        raise ConfigError(
            f"a scan begins or ends at a value that the key's columns cannot hold: {key!r}",
            hint="Give a value of the columns' types, or leave it out.",
            table=columns.table,
        ) from None


def before(keys: Sequence[pa.Array], point: Point, *, or_equal: bool) -> Mask:
    """Return for each row whether its key, cut to the length of the point, is less than the point.

    Args:
        keys: the key columns.
        point: as many parts, or fewer.
        or_equal: whether an equal key counts as well.
    """
    found: Mask = np.full(len(keys[0]), or_equal)
    for array, part in reversed(list(zip(keys, point, strict=False))):
        less, equal = _compared(array, part)
        found = less | (equal & found)
    return found


def _compared(array: pa.Array, part: tuple[int, OrderValue]) -> tuple[Mask, Mask]:
    """Return where a column's values are less than a part of a point, and where they equal it."""
    if part == LEAST:
        return np.zeros(len(array), np.bool_), array.is_null().to_numpy(zero_copy_only=False)
    if part == GREATEST:
        return np.ones(len(array), np.bool_), np.zeros(len(array), np.bool_)
    # Bytes are compared instead of text: a bound may end within a character.
    plain = array.cast(pa.binary()) if isinstance(part[1], bytes) else array
    value = _scalar(plain.type, part[1])
    return _mask(pc.less(plain, value), at_null=True), _mask(pc.equal(plain, value), at_null=False)


def _scalar(of: pa.DataType, value: OrderValue) -> pa.Scalar:
    if pa.types.is_decimal(of):
        return pa.scalar(Decimal(int(value or 0)).scaleb(-of.scale), of)
    if pa.types.is_date32(of):
        return pa.scalar(value, pa.int32()).cast(of)
    if pa.types.is_timestamp(of):
        return pa.scalar(value, pa.int64()).cast(of)
    return pa.scalar(bool(value) if pa.types.is_boolean(of) else value, of)


def _mask(found: pa.Array, *, at_null: bool) -> Mask:
    mask: Mask = pc.fill_null(found, at_null).to_numpy(zero_copy_only=False)
    return mask
