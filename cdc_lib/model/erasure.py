"""Rows of a table whose values are erased: no change of them from before the erasure comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from cdc_lib.model.position import Point, Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName

_DIGEST = 16
"""Bytes of a key's digest."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """Rows to erase, by digests of their keys: the document itself holds no value of them.

    Args:
        id: 16 hex digits.
        source: name of the source.
        table: ``database.table`` at the source.
        salt: hex digits; digests of one key differ between erasures.
        digests: hex digits of each key, see :func:`digest_of`; sorted.
        identity: server that said that it has no such rows.
        epoch: of its positions.
        position: end of its binlog then. What a change before it says of the keys is left out from now on.
        gtid_set: transactions that the server had executed then; empty without GTIDs.
        at: time by its clock then (UTC).
        asked_at: when the erasure was asked for (UTC).
        asked_by: who asked.
        tried_at: when the last attempt left something (UTC); the next one moves the position. None without one.
        ended_at: when nothing was found any more (UTC); None until then.
    """

    id: str
    source: str
    table: TableName
    salt: str
    digests: tuple[str, ...]
    identity: ServerIdentity
    epoch: int
    position: Position
    gtid_set: str
    at: datetime
    asked_at: datetime
    asked_by: str = ""
    tried_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def point(self) -> Point:
        """Changes before it are left out."""
        return Point.at(self.epoch, self.position)

    def has(self, keys: Iterable[Sequence[Any]]) -> list[bool]:
        """Return for each key, as values of its columns in order, whether it is one of the erased rows."""
        known, salt = set(self.digests), bytes.fromhex(self.salt)
        return [digest_of(salt, key) in known for key in keys]


@dataclass(frozen=True, slots=True)
class TableErasures:
    """All erasures of a table, in one document: whoever reads changes of the table reads it, and no other.

    Args:
        erasures: in the order in which something new was known of them.
    """

    erasures: tuple[Erasure, ...] = ()

    def having(self, erasure: Erasure) -> TableErasures:
        """Return them with one that is new, or of which something is new."""
        return replace(self, erasures=(*(one for one in self.erasures if one.id != erasure.id), erasure))


def digest_of(salt: bytes, key: Sequence[Any]) -> str:
    """Return the digest of a key: equal for equal values, whichever of their types a batch or the lake has them in."""
    digest = hashlib.blake2b(key=salt, digest_size=_DIGEST)
    for value in key:
        data = _bytes_of(value)
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes):
        return b"b" + value
    return f"t{_text_of(value)}".encode("utf-8", "surrogatepass")


def _text_of(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(int(value))
    if isinstance(value, Decimal):
        text = f"{value:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, datetime):
        return (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
