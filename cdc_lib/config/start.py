"""``start:`` where a source without a cursor begins; ``switch:`` what happens when another server answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cdc_lib.config.base import Section
from cdc_lib.errors import ConfigError
from cdc_lib.model.position import Position

StartWord = Literal["snapshot", "earliest", "latest"]
_WORDS = ("snapshot", "earliest", "latest")
ALLOWED = (
    "snapshot, earliest, latest, {timestamp: 2026-11-21T06:00:00Z}, {position: binlog.000012:4} or {gtid: SET of GTIDs}"
)


class StartAt(Section):
    """A place in the server's binlog; exactly one of the three.

    Args:
        timestamp: all transactions that committed at this time or later are read.
        position: ``file:offset``; inside a transaction it means that transaction's beginning.
        gtid: all transactions that are not in this set are read.
    """

    timestamp: datetime | None = None
    position: str | None = None
    gtid: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(value is not None for value in (self.timestamp, self.position, self.gtid)) != 1:
            raise ValueError("name one of timestamp, position and gtid")
        return self

    def __str__(self) -> str:
        """As it stands in the cursor's record."""
        if self.timestamp is not None:
            return f"timestamp {self.timestamp.isoformat()}"
        return f"position {self.position}" if self.position is not None else f"gtid {self.gtid}"


def _start(value: object) -> object:
    """Read what stands behind ``start:``; one sentence says all that may."""
    if isinstance(value, StartAt) or value in _WORDS:
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"is not a start; write {ALLOWED}")
    (key, given), *_ = value.items()
    if key == "timestamp":
        return StartAt(timestamp=timestamp(given))
    if key == "position":
        return StartAt(position=position(given))
    if key == "gtid" and isinstance(given, str) and given.strip():
        return StartAt(gtid=given)
    raise ValueError(f"{key!r} is not a start; write {ALLOWED}")


def timestamp(given: object) -> datetime:
    """Return an instant in UTC.

    Raises:
        ValueError: it is none, or has no zone.
    """
    try:
        time = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError("timestamp is not a time with its zone; write it as 2026-11-21T06:00:00Z, or with +01:00")
    return time.astimezone(UTC)


def position(given: object) -> str:
    """Return ``file:offset``.

    Raises:
        ValueError: it is none.
    """
    try:
        return str(Position.parse(str(given)))
    except ConfigError as error:
        raise ValueError("position is not file:offset; write it as binlog.000012:4") from error


Start = Annotated[StartWord | StartAt, BeforeValidator(_start)]
"""What may stand behind ``start:``."""


class SwitchConfig(Section):
    """What happens when another server answers."""

    fallback_interval: int = Field(
        default=60,
        ge=0,
        le=86_400,
        description="0 to 86400: seconds to go back before the last change where no GTIDs tell the place",
    )
    lost_transactions: Literal["stop", "accept"] = Field(
        default="stop", description="stop or accept: when the new server never had transactions that were read"
    )
    attempts: int = Field(
        default=3, ge=1, le=100, description="1 to 100: failed log-ins before the next of the standbys is taken"
    )
    pause: float = Field(default=5.0, ge=0, le=600, description="0 to 600: seconds between them")
