"""``sealed_days:`` when a day of a source counts as complete in the lake."""

from __future__ import annotations

from datetime import UTC, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from cdc_lib.config.base import Duration, Section, at_most


class SealedDaysConfig(Section):
    """When a day is announced to Airflow as complete: once the lake has everything up to its midnight.

    Args:
        time_zone: zone whose midnights end the days.
        delay: how far after midnight the lake must be: for clocks that differ, and for transactions that began before midnight.
    """

    time_zone: str = Field(default="UTC", description="name of a time zone such as Europe/Berlin")
    delay: Annotated[Duration, at_most(timedelta(days=7))] = Field(
        default=timedelta(seconds=60), description="a duration such as 60s, up to 7d"
    )

    @field_validator("time_zone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            _zone(name)
        except (KeyError, ValueError, OSError) as error:  # not found, no name, a folder of the database
            raise ValueError("no time zone of the IANA database, such as Europe/Berlin") from error
        return name

    @property
    def zone(self) -> tzinfo:
        """The time zone."""
        return _zone(self.time_zone)


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)
