"""What differs between the versions of Airflow, 3.1 to 3.3, by what can be imported. The other modules take it from here.

Importing it refuses an older Airflow in one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn

from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context
    from airflow.triggers.base import BaseTrigger

OLDEST = (3, 1)


def refuse_older(version: str) -> None:
    """Refuse a version of Airflow in which the DAGs cannot work.

    Raises:
        ConfigError: it is older than :data:`OLDEST`.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise ConfigError(
            f"the DAGs and operators of lakecdc need Airflow {'.'.join(map(str, OLDEST))} or later, and this is {version}",
            hint="Upgrade Airflow, or let a BashOperator or a container run the command. See docs/guides/airflow-2.md.",
        )


if "airflow" in sys.modules:  # whoever reads a DAG file or a plugin has it; its version costs an import otherwise
    refuse_older(sys.modules["airflow"].__version__)

IS_3_2 = find_spec("airflow.sdk.configuration") is not None
"""Whether the SDK has its own settings, exceptions and keys, a DAG refuses kinds of runs, and provider info has form fields."""

IS_3_3 = IS_3_2 and find_spec("airflow.sdk.definitions.retry_policy") is not None
"""Whether there are retry policies, tasks that wait for a person without a trigger, partitions, and triggers that can be killed."""

DOUBLED = 2.0 if IS_3_2 else True
"""What ``retry_exponential_backoff`` is if each retry waits twice as long as the one before."""

if TYPE_CHECKING or IS_3_2:
    from airflow.sdk import conf, get_parsing_context
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        ParamValidationError,
        TaskDeferred,
    )
    from airflow.sdk.observability.stats import Stats
    from airflow.sdk.types import TaskInstanceKey
else:
    from airflow.configuration import conf
    from airflow.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        ParamValidationError,
        TaskDeferred,
    )
    from airflow.models.taskinstancekey import TaskInstanceKey
    from airflow.sdk import get_parsing_context
    from airflow.stats import Stats

if TYPE_CHECKING or IS_3_3:
    from airflow.sdk.exceptions import TaskAwaitingInput

    from cdc_airflow.retry_policy import CdcRetryPolicy

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
    "ParamValidationError",
    "Stats",
    "TaskDeferred",
    "TaskInstanceKey",
    "conf",
    "get_parsing_context",
]


def no_backfills() -> dict[str, Any]:
    """Return the arguments of a DAG that has every kind of run but a backfill's. Airflow 3.1 refuses no kind of run.

    Airflow takes these texts; its own type for them is private.
    """
    if not IS_3_2:
        return {}
    kinds = ["scheduled", "manual", "asset_materialization", "asset_triggered"]
    return {"allowed_run_types": [*kinds, "operator_triggered"] if IS_3_3 else kinds}


def with_retries(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a task's arguments with the policy that decides about its retries by the error.

    Before Airflow 3.3 there is none: :func:`cdc_airflow.errors.errors_first` ends the task.
    """
    # Of a mapped task this is called with Airflow's default, which is None.
    return {**arguments, "retry_policy": arguments.get("retry_policy") or CdcRetryPolicy()} if IS_3_3 else arguments


def wait_for_person(
    context: Context, options: list[str], method_name: str, kept: dict[str, Any], timeout: timedelta | None
) -> NoReturn:
    """End this part of a task that has asked a person; a method of it is called with the answer.

    Before Airflow 3.3 a trigger waits for the answer, as for those of Airflow's own operators.

    Args:
        context: of the task.
        options: what can be answered.
        method_name: of the method.
        kept: further arguments of the method.
        timeout: how long the answer may take.
    """
    if IS_3_3:
        raise TaskAwaitingInput(method_name=method_name, kwargs=kept, timeout=timeout)
    from airflow.providers.standard.triggers.hitl import HITLTrigger

    until = None if timeout is None else datetime.now(UTC) + timeout
    trigger = HITLTrigger(ti_id=context["ti"].id, options=options, params={}, timeout_datetime=until)
    raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kept)


def announce_keys(event: Any, keys: Collection[str]) -> None:
    """Announce partitions of an asset by the event of a task. Before Airflow 3.3 they are ``days`` in the event's ``extra``."""
    if IS_3_3:
        event.add_partitions(list(keys))
    else:
        event.extra["days"] = list(keys)


def announced_keys(events: Any, asset: Asset, since: str) -> list[str]:
    """Return what :func:`announce_keys` announced of an asset since a time. Airflow 3.1 lists all events."""
    listed = events[asset].after(since) if IS_3_2 else events[asset]
    keys: list[str] = []
    for event in listed:
        keys += (event.extra or {}).get("days", ())  # also of events from before an upgrade to 3.3
        keys += filter(None, [getattr(event, "partition_key", None)])
    return keys


def ended_by_person(trigger: BaseTrigger) -> bool:
    """Say of a trigger that is cancelled whether somebody has ended its task, and not the triggerer alone.

    From Airflow 3.3 on the trigger's ``on_kill`` is called then, and this says no.
    """
    ti: Any = trigger.task_instance
    if IS_3_3 or ti is None:
        return False
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    found = set(states.get(ti.run_id, {}).values())
    return bool(found) and "deferred" not in found
