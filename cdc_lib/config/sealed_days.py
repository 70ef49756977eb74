"""``sealed_days:`` when a day of a source counts as complete in the lake."""

from __future__ import annotations

from datetime import timedelta, tzinfo
from typing import Annotated

from pydantic import Field

from cdc_lib.config.base import Duration, Section, TimeZoneName, at_most, zone_of


class SealedDaysConfig(Section):
    """When a day is announced to Airflow as complete: once the lake has everything up to its midnight.

    Args:
        time_zone: zone whose midnights end the days.
        delay: how far after midnight the lake must be: for clocks that differ, and for transactions that began before midnight.
    """

    time_zone: TimeZoneName = Field(default="UTC", description="name of a time zone such as Europe/Berlin")
    delay: Annotated[Duration, at_most(timedelta(days=7))] = Field(
        default=timedelta(seconds=60), description="a duration such as 60s, up to 7d"
    )

    @property
    def zone(self) -> tzinfo:
        """The time zone."""
        return zone_of(self.time_zone)
