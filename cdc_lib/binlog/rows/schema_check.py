"""Checks a TABLE_MAP against the table's definition in the schema history.

Names, members and the key are not in a table map without full metadata, but number, types, sizes and nullability of the
columns are, and mostly signs and character sets. Any difference means that a change of the table was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_lib.model.column_types import LONG_BYTES, LONG_TEXTS
from cdc_lib.model.members import member_bytes
from cdc_lib.model.pace import counted
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
    if event.nullable != column.nullable and not left.family.null_by_setting:
        return False
    if not left.is_supported and event.code not in (*_BLOBS, *_VARCHARS):
        return True  # refused by name a step later
    if left.kind != right.kind or any(getattr(left, of) != getattr(right, of) for of in left.family.declared):
        return False
    if left.family.has_members:
        return event.meta >> 8 == member_bytes(right)
    return not left.family.in_hex or _same_size(event, right)


def _same_size(event: Declared, right: SourceType) -> bool:
    # The text may say more, as in "varchar(30) /*M!100301 COMPRESSED*/".
    name = right.text.partition("(")[0].partition(" ")[0]
    if event.code in _BLOBS:
        return _LONG.get(name) == event.meta
    return name not in _LONG and event.type.width == right.width and name.startswith("var") == (event.code in _VARCHARS)


def _size(event: Declared) -> str:
    return f" with {event.meta} bytes of length" if event.code in _BLOBS else ""


def _shown(kind: SourceType, *, nullable: bool, size: str = "") -> str:
    text = replace(kind, text="").spelled or kind.kind
    text += f" of {counted(kind.width, 'byte')}" if kind.width and text == kind.kind else ""
    more = [kind.charset, "" if nullable else "not null"]
    return " ".join(filter(None, [text + size, *more]))
