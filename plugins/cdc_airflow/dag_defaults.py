"""What the DAGs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from cdc_airflow.airflow_versions import DOUBLED

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
"""Airflow wants a date before the first run; with catchup off it makes no run for the time since."""

RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": DOUBLED,
    "max_retry_delay": timedelta(minutes=10),
}


def new_dag(name: str, *tags: str, schedule: Any, **own: Any) -> DAG:
    """Return a DAG with what all of them have in common."""
    return DAG(
        name,
        schedule=schedule,
        start_date=SINCE,
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
