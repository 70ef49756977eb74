"""``start:`` where a source without a cursor begins; ``failover:`` what happens when another server answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from cdc_lib.config.base import Duration, Section, at_most
from cdc_lib.errors import ConfigError
from cdc_lib.model.position import Position

StartWord = Literal["snapshot", "earliest", "latest"]
_WORDS = ("snapshot", "earliest", "latest")
ALLOWED = (
    "snapshot, earliest, latest, {timestamp: 2026-11-21T06:00:00Z}, {position: binlog.000012:4} or {gtid: SET of GTIDs}"
)


class StartAt(Section):
    """A position in the server's binlog; exactly one of the three.

    Args:
        timestamp: all transactions that committed at this time or later are read.
        position: ``file:offset``; inside a transaction it means the start of that transaction.
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
        """Return it as in the cursor's record of moves."""
        if self.timestamp is not None:
            return f"timestamp {self.timestamp.isoformat()}"
        return f"position {self.position}" if self.position is not None else f"gtid {self.gtid}"


def _start(value: object) -> object:
    """Parse the value of ``start:``; the error lists all valid forms."""
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
    """Return a timestamp in UTC.

    Raises:
        ValueError: it is not a valid timestamp, or has no zone.
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
        ValueError: it is not a valid position.
    """
    try:
        return str(Position.parse(str(given)))
    except ConfigError as error:
        raise ValueError("position is not file:offset; write it as binlog.000012:4") from error


Start = Annotated[StartWord | StartAt, BeforeValidator(_start)]
"""Valid values of ``start:``."""


class FailoverConfig(Section):
    """What happens when another server answers."""

    fallback_interval: Annotated[Duration, at_most(timedelta(days=1))] = Field(
        default=timedelta(seconds=60),
        description="a duration such as 60s, up to 1d: how far to go back before the last change where no GTIDs give the position",
    )
    on_missing_transactions: Literal["fail", "ignore", "ask"] = Field(
        default="fail",
        description="fail, ignore or ask (a person, in Airflow): when the new server never had transactions that were read",
    )
    attempts: int = Field(
        default=3, ge=1, le=100, description="1 to 100: failed log-ins before the next of the standbys is taken"
    )
    retry_delay: Annotated[Duration, at_most(timedelta(minutes=10))] = Field(
        default=timedelta(seconds=5), description="a duration such as 5s, up to 10m: time between them"
    )
