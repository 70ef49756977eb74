"""Values at which a table may be cut into ranges of its key, between two keys that it has: pure.

A value need not be a key. The server answers with the first key from it on, so a bad value costs balance and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from cdc_lib.model.schema import SourceType

_STEPS = 16
"""Values between two keys."""
_BYTES, _PLACES = 8, 9
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:/@ "
"""Texts of keys mostly begin with one of these; a server sorts them by its collation."""
_UNICODE = frozenset({"utf8mb4", "utf8mb3", "utf8", "ucs2", "utf16", "utf16le", "utf32"})
_SURROGATES = range(0xD800, 0xE000)


def between(source_type: SourceType, low: str, high: str, texts: tuple[str, str] = ("", "")) -> list[str]:
    """Return SQL literals between two values of a column of the key, in no order; ``high`` itself is mostly among them.

    Args:
        source_type: of the column.
        low: the lesser value, in the text form of ``cdc_lib/snapshot/chunks.py``.
        high: the greater one.
        texts: the same of a text column, in Unicode.
    """
    family = source_type.family
    if family.has_charset:
        found = [text.encode().hex() for text in _texts(*texts, wide=source_type.charset in _UNICODE)]
    elif family.in_hex:
        found = _bytes(bytes.fromhex(low), bytes.fromhex(high))
    elif family.is_date:
        found = _times(low, high, of_days=not family.has_fraction)
    elif family.has_fraction:  # times of day: a key that hardly any large table has
        found = [high]
    else:
        places = _PLACES if family.is_float else source_type.scale
        found = [f"{_rounded(value, places):f}" for value in _steps(Fraction(low), Fraction(high))]
    return [source_type.literal(text, "utf8mb4") for text in found]


def _steps(low: Fraction, high: Fraction) -> Iterator[Fraction]:
    """Yield values at equal distances, the last of them the greater end."""
    for step in range(1, _STEPS + 1):
        yield low + (high - low) * step / _STEPS


def _rounded(value: Fraction, places: int) -> Decimal:
    scaled = value * 10**places
    return Decimal(-(-scaled.numerator // scaled.denominator)).scaleb(-places)


def _times(low: str, high: str, *, of_days: bool) -> list[str]:
    try:
        first, last = datetime.fromisoformat(low), datetime.fromisoformat(high)
    except ValueError:  # a day that no calendar has
        return [high]
    found = [first + timedelta(seconds=float(step)) for step in _steps(Fraction(0), _seconds(last - first))]
    return [str(one.date()) if of_days else str(one) for one in found]


def _seconds(time: timedelta) -> Fraction:
    return Fraction(time // timedelta(microseconds=1), 1_000_000)


def _bytes(low: bytes, high: bytes) -> list[str]:
    """Interpolate the first bytes in which the values differ."""
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    ends = [int.from_bytes(one[same : same + _BYTES].ljust(_BYTES, b"\0")) for one in (low, high)]
    cut = [int(value).to_bytes(_BYTES) for value in _steps(Fraction(ends[0]), Fraction(ends[1]))]
    return [(low[:same] + one).rstrip(b"\0").hex() for one in cut[:-1]] + [high.hex()]


def _texts(low: str, high: str, *, wide: bool) -> list[str]:
    """Return texts that begin as both do in either case, and then have one letter more."""
    pairs = enumerate(zip(low, high, strict=False))
    same = next((i for i, (a, b) in pairs if a.casefold() != b.casefold()), min(len(low), len(high)))
    letters = {*_LETTERS, *low[same : same + 1], *high[same : same + 1]}
    ends = sorted(ord(one[same]) for one in (low, high) if len(one) > same)
    if wide and ends and ends[-1] > 0x7F:
        points = {int(value) for value in _steps(Fraction(ends[0] if len(ends) > 1 else 0x7F), Fraction(ends[-1]))}
        letters |= {chr(point) for point in points if point not in _SURROGATES}
    return [high[:same] + letter for letter in sorted(letters)]
