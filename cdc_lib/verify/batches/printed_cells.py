"""Whether a cell of a batch and the text that mysqlbinlog prints for it are equal, for the types whose text is exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdc_lib.model.schema import Column, SourceType
from cdc_lib.verify.batches.cells import Compare, Unsure

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - printed values have no zone, either
_MICROSECOND = timedelta(microseconds=1)
_UTF8 = {"utf8mb4", "utf8mb3", "utf8", "ascii", ""}
_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b", "Z": "\x1a", "a": "\a", "f": "\f", "v": "\v"}


def compare_of(column: Column, *, named: bool) -> Compare | str:  # noqa: ARG001 - the program never knows more than the order
    """Return how cells of a column are compared with printed texts, or why they cannot be; see :func:`cdc_lib.verify.batches.cells.compare_of`."""
    kind = column.type
    of_values = _VALUES.get(kind.kind)
    if of_values is None or (kind.kind == "string" and kind.charset not in _UTF8) or kind.form:
        return f"mysqlbinlog prints {kind.text or kind.kind} in another way"
    same = of_values(kind)

    def compare(stored: Any, printed: Any, _: str) -> bool:
        if printed is None:
            return stored is None
        if kind.family.is_date and (stored is None or isinstance(stored, str)):
            raise Unsure("a date that the lake's types cannot hold")
        return stored is not None and same(stored, printed)

    return compare


def _integer(kind: SourceType) -> Callable[[Any, str], bool]:
    modulus = 1 << (8 * kind.width)

    def same(stored: Any, printed: str) -> bool:
        number = int(printed.partition(" ")[0])  # -1 (255): the program does not know whether it has a sign
        if kind.as_boolean == "as_true":
            return bool(stored == (number != 0))
        return int(stored) == (number % modulus if kind.unsigned else number)

    return same


def _decimal(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: Decimal(stored) == Decimal(printed)


def _year(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: int(stored) == int(printed)


def _bit(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: int(stored) == int(printed.strip("b'") or "0", 2)


def _text(_: SourceType) -> Callable[[Any, str], bool]:
    def same(stored: Any, printed: str) -> bool:
        if "\ufffd" in stored:
            raise Unsure("the batch replaces invalid bytes (invalid_text)")
        return bool(stored.encode() == _bytes_of(printed))

    return same


def _bytes(kind: SourceType) -> Callable[[Any, str], bool]:
    padded = kind.text.lower().startswith("binary") or not kind.text

    def same(stored: Any, printed: str) -> bool:
        found = _bytes_of(printed)
        # The binlog leaves out the zero bytes at the end of BINARY(n).
        return bool(stored.rstrip(b"\0") == found.rstrip(b"\0") if padded else stored == found)

    return same


def _bytes_of(printed: str) -> bytes:
    """Return the bytes of a quoted text; each of its characters is a byte."""
    if not (printed.startswith("'") and printed.endswith("'")):
        raise Unsure("mysqlbinlog does not print this value as a text")
    return _ESCAPED.sub(_unescaped, printed[1:-1]).encode("latin-1")


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text[1:], 16)) if len(text) > 1 else _LETTERS.get(text, text)


def _date(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: stored == (date(*map(int, printed.strip("'").split(":"))) - date(1970, 1, 1)).days


def _datetime(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: stored == (datetime.fromisoformat(printed.strip("'")) - _EPOCH) // _MICROSECOND


def _timestamp(_: SourceType) -> Callable[[Any, str], bool]:
    return lambda stored, printed: stored == int(Decimal(printed) * 1_000_000)


_VALUES: dict[str, Callable[[SourceType], Callable[[Any, str], bool]]] = {
    "int": _integer, "decimal": _decimal, "bit": _bit, "string": _text, "bytes": _bytes, "date": _date, "datetime": _datetime,
    "timestamp": _timestamp, "year": _year,
}  # fmt: skip
