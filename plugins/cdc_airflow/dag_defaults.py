"""What the DAGs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, Param

from cdc_airflow.airflow_versions import DOUBLED


def since(timezone: str = "UTC") -> datetime:
    """Return the date before the first run that Airflow wants; its zone is that of the schedule. With catchup off there are no runs for the time since."""
    return pendulum.datetime(2026, 1, 1, tz=timezone)


RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": DOUBLED,
    "max_retry_delay": timedelta(minutes=10),
}


def new_dag(name: str, *tags: str, schedule: Any, timezone: str = "UTC", **own: Any) -> DAG:
    """Return a DAG with what all of them have in common.

    Args:
        name: its id.
        *tags: beside the tag of all.
        schedule: when its runs begin.
        timezone: of the schedule.
        **own: other arguments of the DAG.
    """
    return DAG(
        name,
        schedule=schedule,
        start_date=since(timezone),
        catchup=False,
        # With it on, each file of dags/ that makes DAGs to look at them would own them as well, and Airflow would read a task's DAG
        # from the file that came last.
        auto_register=False,
        max_active_runs=1,
        default_args=RETRIES,
        tags=["cdc", *tags],
        **own,
    )


def with_form(dag: DAG, form: Mapping[str, Param]) -> DAG:
    """Give a DAG, once it has its tasks, the form of its runs, and return it.

    A task that is made after the form gets a copy, which Airflow validates several times when it serializes the task. A run
    takes the values from the DAG in any case.
    """
    dag.params.update(form)
    return dag


def in_pool(name: str | None) -> dict[str, Any]:
    """Return the arguments that put a task into a pool; none without a name."""
    return {"pool": name} if name else {}
