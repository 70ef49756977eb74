"""The task that announces the days of a source that are complete in the lake, each of them once."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType

from cdc_airflow.airflow_versions import AirflowSkipException, announced_keys
from cdc_airflow.assets import announce_days, sealed_days
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook
    from cdc_lib.model.sealed_days import AnnouncedDays
    from cdc_lib.pipeline import Pipeline


class SealDaysOperator(CdcOperator):
    """Announce each day that is complete in the lake as a partition of the asset :func:`~cdc_airflow.assets.sealed_days`, once.

    Airflow writes the events of a task and its success in one transaction: a task that was killed, failed or marked announced
    nothing. So Airflow's own events say which days are announced, and a day without one comes again. A document in the store
    keeps what they said, for the time when Airflow has removed them. Airflow runs one task of this operator of a DAG at a time;
    two DAGs must not announce the days of one source.

    Args:
        source: name of the source.
    """

    announces_days = True

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        asset = sealed_days(source)
        super().__init__(**{"inlets": [asset], "outlets": [asset], "max_active_tis_per_dag": 1, **kwargs})
        self.source = source

    def work(self, hook: CdcHook, context: Context) -> list[str]:
        """Return the days that are announced.

        Raises:
            AirflowSkipException: there is none.
            ConfigError: the source file is that of another source.
        """
        from cdc_lib.model.sealed_days import Announcement, advanced
        from cdc_lib.status.sealed_days import sealed_days_of
        from cdc_lib.store.announced_days import note_announced, note_announcement

        config = hook.config
        if config.source != self.source:
            raise ConfigError(
                f"the task announces days of {self.source}, and its source file is that of {config.source}",
                hint="Give the same name as source.",
            )
        pipeline = hook.lake_pipeline()
        days = sealed_days_of(pipeline)
        if days.cut is None or days.sealed is None:
            raise AirflowSkipException("it is unknown up to when the lake has everything: no cut, or a snapshot waits")
        if days.announced is None:
            through = note_announced(pipeline.store, self.source, days.sealed).through
            raise AirflowSkipException(f"the first day that will be announced is the one after {through}")
        announced = self._announced(context, days.announced) if days.waiting else set()
        note_announced(pipeline.store, self.source, advanced(days.announced.through, announced))
        new = tuple(day for day in days.waiting if day not in announced)
        if not new:
            raise AirflowSkipException(f"the lake has everything up to {days.merged_to}; no new day is complete")
        ti = context["ti"]
        note_announcement(pipeline.store, self.source, Announcement(new, ti.dag_id, ti.run_id, ti.task_id))
        announce_days(days.cut, new, context["outlet_events"], time_zone=config.sealed_days.time_zone)
        for day in new:
            self.log.info("complete: %s (%s)", day, config.sealed_days.time_zone)
        return [day.isoformat() for day in new]

    def _announced(self, context: Context, known: AnnouncedDays) -> set[date]:
        """Return the days after those that are known to be announced of which Airflow has an event.

        Raises:
            AirflowSkipException: Airflow cannot say so now.
        """
        # The event of a day comes after its end; two days leave room for any time zone and clock.
        since = f"{known.through - timedelta(days=2)}T00:00:00+00:00"
        try:
            return set(days_of(announced_keys(context["inlet_events"], sealed_days(self.source), since)))
        except AirflowRuntimeError as error:
            if error.error.error != ErrorType.API_SERVER_ERROR:
                raise
            return self._announced_last(context, known, error)

    def _announced_last(self, context: Context, known: AnnouncedDays, error: AirflowRuntimeError) -> set[date]:
        """Return the days that the last task announced, by its state.

        Airflow 3.3 lists no event of an asset while a run that one of them created waits to start.
        """
        last, ti = known.last, context["ti"]
        if last is None or not any(day > known.through for day in last.days):
            return set()
        states = ti.get_task_states(dag_id=last.dag_id, task_ids=[last.task_id], run_ids=[last.run_id])
        if states.get(last.run_id, {}).get(last.task_id) == "success":
            return set(last.days)
        self.log.warning("Airflow does not list the events of %s now: %s", sealed_days(self.source).uri, error)
        raise AirflowSkipException(
            f"whether {last.run_id} announced {', '.join(map(str, last.days))} is known when runs that wait have started"
        )


def days_of(keys: Iterable[str | None]) -> Iterable[date]:
    """Yield the day of each key; other keys, which somebody may have announced by hand, are left out."""
    for key in keys:
        try:
            yield date.fromisoformat(key or "")
        except ValueError:
            continue


def day_waits(pipeline: Pipeline) -> bool:
    """Whether a day is complete in the lake and not known to be announced, or nobody looked yet; the server is not asked."""
    from cdc_lib.status.sealed_days import sealed_days_of

    return sealed_days_of(pipeline).needs_a_look
