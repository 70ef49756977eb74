"""What tests must know of the version of Airflow with which they run: each runs with any that the project supports."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization import serialized_objects

from cdc_airflow.airflow_versions import IS_3_2, IS_3_3, AirflowFailException, TaskDeferred
from cdc_airflow.errors import errors_first
from cdc_lib.errors import CdcError

if IS_3_3:
    from airflow.sdk import RetryAction
    from airflow.sdk.exceptions import TaskAwaitingInput

    from cdc_airflow.retry_policy import CdcRetryPolicy

if IS_3_2:
    from airflow.dag_processing.dagbag import DagBag
else:
    from airflow.models.dagbag import DagBag

__all__ = ["WAITING", "WAITS", "DagBag", "as_scheduled", "ends_with", "is_retried", "of_3_3", "timeout_of"]

of_3_3 = pytest.mark.skipif(not IS_3_3, reason="Airflow has this from 3.3 on")

WAITING: type[BaseException] = TaskAwaitingInput if IS_3_3 else TaskDeferred
"""What a task raises that waits for a person."""

WAITS = "awaiting_input" if IS_3_3 else "deferred"
"""The state of such a task."""


def as_scheduled(dag: DAG) -> Any:
    """Return a DAG as the scheduler reads it from the database."""
    kind = getattr(serialized_objects, "DagSerialization", serialized_objects.SerializedDAG)
    return kind.from_dict(kind.to_dict(dag))


def timeout_of(waiting: Any) -> timedelta | None:
    """Return how long a person may take, to the minute."""
    if IS_3_3:
        return waiting.timeout
    until = waiting.trigger.timeout_datetime
    return None if until is None else timedelta(minutes=round((until - datetime.now(UTC)) / timedelta(minutes=1)))


def ends_with(kind: type[CdcError]) -> type[Exception]:
    """Return what a task ends with after an error of the library that is not retried; the message is the same."""
    return kind if IS_3_3 else AirflowFailException


def is_retried(error: CdcError) -> bool:
    """Say whether Airflow tries a task again that ends with an error, and has retries left."""
    if IS_3_3:
        return CdcRetryPolicy().evaluate(error, 1, 3).action is RetryAction.DEFAULT
    with pytest.raises((AirflowFailException, type(error))) as ended, errors_first(logging.getLogger("task")):
        raise error
    return not isinstance(ended.value, AirflowFailException)
