"""Days that have a run only when somebody asks for them."""

from __future__ import annotations

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import DateTime


class DaysOnRequest(CronDataIntervalTimetable):
    """Each day is an interval, and the scheduler makes no run of it automatically: Airflow's backfill does.

    Airflow refuses to backfill a DAG without a schedule. The scheduler asks with ``catchup`` off, as the DAG has it; a backfill
    asks with it on.
    """

    description = "Each day, when a backfill asks for it"

    def __init__(self) -> None:
        super().__init__("@daily", timezone="UTC")

    @property
    def summary(self) -> str:
        """What the list of DAGs shows."""
        return "on request"

    def serialize(self) -> dict[str, object]:
        """There is nothing to remember."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, object]) -> DaysOnRequest:  # noqa: ARG003 - Airflow's signature
        """Return the same."""
        return cls()

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the day after the last one for a backfill, and none for the scheduler."""
        if not restriction.catchup:
            return None
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Return no stretch of time: a run by hand has its times from the form, or takes all that is stored."""
        return DataInterval.exact(run_after)
