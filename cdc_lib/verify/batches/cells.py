"""Whether a cell of a batch and the value of mysql-replication are equal, for the types that it reads right.

A stored cell is the Arrow value in Python, but of dates the days since 1970 and of datetimes and timestamps the microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdc_lib.model.decoded_event import EMPTY_SET, NULL
from cdc_lib.model.schema import Column, SourceType

Compare = Callable[[Any, Any, str], bool]
"""Whether a stored cell equals a decoded value, whose None has a reason; raises :class:`Unsure`."""


_UTF8 = {"utf8mb4", "utf8mb3", "utf8", "ascii", ""}
_CHARSETS = _UTF8 | {"latin1", "cp1251"}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the decoder's values have no zone, either
_MICROSECOND = timedelta(microseconds=1)
_UNDEFINED = frozenset("\x81\x8d\x8f\x90\x9d")
"""Characters of the server's latin1 that Python's cp1252 does not have."""

_JSON = "mysql-replication gives objects: their numbers and their order are not those of the server's text"
_UNNAMED = "the binlog has no column metadata for mysql-replication (binlog_row_metadata is not FULL)"


class Unsure(Exception):
    """One value cannot be compared; the text says why."""


def compare_of(column: Column, *, named: bool) -> Compare | str:
    """Return how cells of a column are compared, or why they cannot be.

    Args:
        column: as it is stored in the batch, without a mask.
        named: whether the decoder knows the column's metadata: its name, sign, character set and members.
    """
    kind = column.type
    if wrong := _unreadable(kind, named=named):
        return wrong
    of_values = _VALUES[kind.kind](kind, named)
    nulls = _temporal_null if kind.family.is_date else _null

    def compare(stored: Any, decoded: Any, why: str) -> bool:
        if decoded is None and not (why == EMPTY_SET and kind.kind == "set"):
            return nulls(stored, why if named else "")
        return of_values(stored, decoded)

    return compare


def table_unreadable(columns: tuple[Column, ...]) -> str:
    """Return why mysql-replication cannot read any row of a table; empty if it can."""
    for column in columns:
        if column.type.form == "compressed":
            return f"mysql-replication does not know compressed columns of MariaDB ({column.name})"
        if column.type.kind == "unsupported" or column.type.text.lower().startswith("vector"):
            return f"mysql-replication does not know the type {column.type.text} ({column.name})"
    return ""


def _unreadable(kind: SourceType, *, named: bool) -> str:
    why = ""
    match kind.kind:
        case "json":
            why = _JSON
        case "string" if kind.charset not in _CHARSETS:
            why = f"mysql-replication does not decode the character set {kind.charset} as the server does"
        case "bytes" if kind.form:
            why = f"mysql-replication does not know the type {kind.form} of MariaDB"
        case "date" | "time" | "datetime" | "timestamp" if kind.form == "old":
            why = "mysql-replication reads the temporal format before MySQL 5.6 inexactly"
    return why or ("" if named or not _needs_metadata(kind) else _UNNAMED)


def _needs_metadata(kind: SourceType) -> bool:
    match kind.kind:
        case "enum" | "set":
            return True
        case "string":
            return kind.charset not in _UTF8
        case "bytes":
            return not _is_geometry(kind)
        case _:
            return False


def _null(stored: Any, why: str) -> bool:  # noqa: ARG001 - the signature of both
    return stored is None


def _temporal_null(stored: Any, why: str) -> bool:
    if stored is not None and why != NULL:
        raise Unsure("mysql-replication gives None for zero and invalid dates")
    return stored is None


def _integer(kind: SourceType, named: bool) -> Callable[[Any, Any], bool]:
    if kind.as_boolean == "as_true":
        return lambda stored, decoded: stored is not None and stored == (decoded != 0)
    modulus = 1 << (8 * kind.width)
    if kind.unsigned and not named:
        return lambda stored, decoded: stored is not None and int(stored) == decoded % modulus
    return lambda stored, decoded: stored is not None and int(stored) == decoded


def _bit(_: SourceType, __: bool) -> Callable[[Any, Any], bool]:
    return lambda stored, decoded: stored is not None and int(stored) == int(decoded, 2)


def _decimal(_: SourceType, __: bool) -> Callable[[Any, Any], bool]:
    return lambda stored, decoded: stored is not None and Decimal(stored) == decoded


def _float(_: SourceType, __: bool) -> Callable[[Any, Any], bool]:
    return lambda stored, decoded: repr(stored) == repr(decoded)  # also the sign of zero


def _text(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    utf8 = kind.charset in _UTF8

    def same(stored: Any, decoded: Any) -> bool:
        if isinstance(decoded, bytes):
            raise Unsure("mysql-replication does not decode this text")
        if stored != decoded and stored is not None:
            if kind.charset == "latin1" and _UNDEFINED & set(stored):
                raise Unsure("mysql-replication drops characters of latin1 that cp1252 does not have")
            if utf8 and "\ufffd" in stored:
                raise Unsure("mysql-replication drops invalid bytes, which the batch replaces (invalid_text)")
        return bool(stored == decoded)

    return same


def _bytes(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    padded = kind.text.lower().startswith("binary") or not kind.text

    def same(stored: Any, decoded: Any) -> bool:
        found = b"" if decoded == "" else decoded  # an empty value is a str
        if not isinstance(found, bytes):
            raise Unsure("mysql-replication takes these bytes for a text")
        if stored is None:
            return False
        # The binlog leaves out the zero bytes at the end of BINARY(n), and mysql-replication too.
        return bool(stored.rstrip(b"\0") == found.rstrip(b"\0") if padded else stored == found)

    return same


def _date(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    if kind.as_text:
        return lambda stored, decoded: stored == decoded.isoformat()
    return lambda stored, decoded: stored == (decoded - date(1970, 1, 1)).days


def _datetime(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    if kind.as_text:
        return lambda stored, decoded: stored == _moment_text(decoded, kind.scale)
    return lambda stored, decoded: stored == (decoded - _EPOCH) // _MICROSECOND


def _timestamp(kind: SourceType, named: bool) -> Callable[[Any, Any], bool]:
    same_moment = _datetime(kind, named)

    def same(stored: Any, decoded: Any) -> bool:
        if decoded < _EPOCH:
            raise Unsure("mysql-replication reads a TIMESTAMP after 2038 as one before 1970")
        if decoded == _EPOCH:
            if stored is None:
                return True
            raise Unsure("mysql-replication reads the zero TIMESTAMP as 1970")
        return same_moment(stored, decoded)

    return same


def _time(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    def same(stored: Any, decoded: Any) -> bool:
        if kind.scale and decoded < timedelta(0):
            raise Unsure("mysql-replication reads the fraction of a negative TIME wrong")
        return bool(stored == _time_text(decoded, kind.scale))

    return same


def _year(_: SourceType, __: bool) -> Callable[[Any, Any], bool]:
    return lambda stored, decoded: stored == (0 if decoded == 1900 else decoded)  # its 1900 is the year 0


def _enum(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    def same(stored: Any, decoded: Any) -> bool:
        _refuse_labels(kind, stored)
        return bool(stored == decoded)

    return same


def _set(kind: SourceType, _: bool) -> Callable[[Any, Any], bool]:
    def same(stored: Any, decoded: Any) -> bool:
        _refuse_labels(kind, stored)
        return stored is not None and set(filter(None, stored.split(","))) == (decoded or set())

    return same


def _refuse_labels(kind: SourceType, stored: str | None) -> None:
    if stored is not None and kind.charset not in _UTF8 and not stored.isascii():
        raise Unsure(f"mysql-replication reads labels in {kind.charset} as UTF-8")


_VALUES: dict[str, Callable[[SourceType, bool], Callable[[Any, Any], bool]]] = {
    "int": _integer, "decimal": _decimal, "float": _float, "double": _float, "bit": _bit, "string": _text, "bytes": _bytes,
    "date": _date, "time": _time, "datetime": _datetime, "timestamp": _timestamp, "year": _year, "enum": _enum, "set": _set,
}  # fmt: skip


def _is_geometry(kind: SourceType) -> bool:
    return kind.text.lower().startswith(("geom", "point", "line", "poly", "multi"))


def _moment_text(moment: datetime, digits: int) -> str:
    return moment.isoformat(" ", "microseconds")[: 20 + digits if digits else 19]


def _time_text(length: timedelta, digits: int) -> str:
    micros = abs(length) // _MICROSECOND
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{'-' if length < timedelta(0) else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}"[: len(text) + 1 + digits] if digits else text


def stored_text(kind: SourceType, value: Any) -> str | None:
    """Return a stored cell as text for people; None for NULL."""
    if isinstance(value, int) and kind.family.is_date:
        days, micros = (value, 0) if kind.kind == "date" else divmod(value, 86_400_000_000)
        try:
            moment = _EPOCH + timedelta(days=days, microseconds=micros)
        except OverflowError:
            return f"{value} since 1970"  # the year 0, which Python's dates do not have
        return moment.date().isoformat() if kind.kind == "date" else _moment_text(moment, kind.scale)
    return decoded_text(value)


def decoded_text(value: Any) -> str | None:
    """Return a value as text for people; None for NULL."""
    match value:
        case None | str():
            return value
        case bytes():
            return f"0x{value.hex()}"
        case set():
            return ",".join(sorted(value))
        case _:
            return str(value)
