"""Checks a TABLE_MAP against the table's definition in the schema history.

Names, members and the key are not in a table map without full metadata, but number, types, sizes and nullability of the
columns are, and mostly signs and character sets. Any difference means that a change of the table was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.model.column_types import LONG_BYTES, LONG_TEXTS
from cdc_lib.model.schema import Column, SourceType, TableSchema

_BLOBS, _VARCHARS = (252, 140), (15, 141)
"""Type bytes, plain and compressed."""
_LONG = LONG_TEXTS | LONG_BYTES
"""Bytes of the length before a value."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A column as the event declares it.

    Args:
        type: as far as the event says, completed by the history.
        code: type byte; that of the real type for what hides after a STRING.
        meta: metadata.
        nullable: whether it allows NULL.
    """

    type: SourceType
    code: int
    meta: int
    nullable: bool


def disagreement(declared: Sequence[Declared], known: TableSchema) -> str:
    """Return both sides as a table for people, or an empty text when they agree."""
    pairs = list(zip(declared, known.columns, strict=False))
    if len(declared) == len(known.columns) and all(_agree(event, column) for event, column in pairs):
        return ""
    lines = [f"  {'':4}{'binlog':36}history"]
    for index in range(max(len(declared), len(known.columns))):
        event = declared[index] if index < len(declared) else None
        column = known.columns[index] if index < len(known.columns) else None
        left = _shown(event.type, nullable=event.nullable, size=_size(event)) if event else "-"
        right = f"{column.name} {_shown(column.type, nullable=column.nullable)}" if column else "-"
        mark = "" if event and column and _agree(event, column) else "  <--"
        lines.append(f"  {index + 1:<4}{left:36}{right}{mark}")
    return "\n".join(lines)


def _agree(event: Declared, column: Column) -> bool:
    left, right = event.type, column.type
    # Whether a TIMESTAMP without a word allows NULL depends on the server's settings.
    if event.nullable != column.nullable and left.kind != "timestamp":
        return False
    if left.kind == "unsupported" and event.code not in (*_BLOBS, *_VARCHARS):
        return True  # refused by name a step later
    if left.kind != right.kind:
        return False
    match left.kind:
        case "int":
            return (left.width, left.unsigned) == (right.width, right.unsigned)
        case "bit":
            return left.width == right.width
        case "decimal":
            return (left.precision, left.scale) == (right.precision, right.scale)
        case _ if left.family.has_fraction:
            return left.scale == right.scale
        case "enum":
            return left.charset == right.charset and event.meta >> 8 == (1 if len(right.members) < 256 else 2)
        case "set":
            size = (len(right.members) + 7) // 8
            return left.charset == right.charset and event.meta >> 8 == (size if size <= 4 else 8)
        case "string" | "bytes":
            return left.charset == right.charset and _same_size(event, right)
    return True


def _same_size(event: Declared, right: SourceType) -> bool:
    # The text may say more, as in "varchar(30) /*M!100301 COMPRESSED*/".
    name = right.text.partition("(")[0].partition(" ")[0]
    if event.code in _BLOBS:
        return _LONG.get(name) == event.meta
    return name not in _LONG and event.type.width == right.width and name.startswith("var") == (event.code in _VARCHARS)


def _size(event: Declared) -> str:
    return f" with {event.meta} bytes of length" if event.code in _BLOBS else ""


def _shown(kind: SourceType, *, nullable: bool, size: str = "") -> str:
    text: str = kind.kind
    if kind.kind == "decimal":
        text += f"({kind.precision},{kind.scale})"
    elif kind.family.has_fraction:
        text += f"({kind.scale})"
    elif kind.width:
        text += f" of {kind.width} {'bits' if kind.kind == 'bit' else 'bytes'}"
    more = ["unsigned" if kind.unsigned else "", kind.charset, "" if nullable else "not null"]
    return " ".join(filter(None, [text + size, *more]))
