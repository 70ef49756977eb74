"""Tasks that wait for a person: Airflow shows what is asked under *Required actions*, and takes the answer.

A task that waits holds no worker, and from Airflow 3.3 on no trigger. Airflow records who answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.execution_time.hitl import upsert_hitl_detail

from cdc_airflow.airflow_versions import AirflowFailException, wait_for_person

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.config.approvals import ApprovalsConfig

APPROVE, REJECT = "Approve", "Reject"


def ask(context: Context, rule: ApprovalsConfig, subject: str, body: str, **kept: Any) -> NoReturn:
    """Ask a person, and end this part of the task; its method ``approved`` is called with the answer.

    Args:
        context: of the task.
        rule: says how long the answer may take.
        subject: the question.
        body: what is needed to decide, in Markdown; no secrets and no rows.
        kept: further arguments of ``approved``.
    """
    options = [APPROVE, REJECT]
    upsert_hitl_detail(ti_id=context["ti"].id, options=options, subject=subject, body=body, params={})
    wait_for_person(context, options, "approved", kept, rule.timeout)


def approver(event: dict[str, Any]) -> str:
    """Return who approved.

    Args:
        event: what Airflow calls ``approved`` with.

    Raises:
        AirflowFailException: it was rejected, or nobody answered in time; no retry asks again.
    """
    if "error" in event:
        raise AirflowFailException(f"nobody approved in time: {event['error']}")
    user = event.get("responded_by_user") or {}
    name = str(user.get("name") or user.get("id") or "unknown") if isinstance(user, dict) else str(user)
    if event["chosen_options"] != [APPROVE]:
        raise AirflowFailException(f"{name} rejected it; nothing was changed")
    return name
