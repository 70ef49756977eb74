"""``GET /sources/{dag_id}/actions``: what this user may ask for. Asking is a DAG run, made by Airflow's own API.

So Airflow authorises each, and its audit log names the user. Nothing here changes anything.
"""

from __future__ import annotations

from typing import Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import APIRouter
from pydantic import BaseModel

from cdc_airflow.factory import backfill_dag_id, dag_id, verify_dag_id
from cdc_airflow.page.listed import MAY_READ, ASource

Kind = Literal["run", "verify", "backfill"]

router = APIRouter(dependencies=[MAY_READ])


class Action(BaseModel):
    """One thing that may be asked for: a run of a DAG, with parameters where ``kind`` is ``backfill``."""

    kind: Kind
    dag_id: str
    allowed: bool


class ActionList(BaseModel):
    """What there is for a source."""

    actions: list[Action]


@router.get("/sources/{dag_id}/actions")
def list_actions(source: ASource, user: GetUserDep) -> ActionList:
    """Return the DAGs that a person may run for a source, and whether this one may."""
    dags: dict[Kind, str] = {"run": dag_id(source.name)}
    if source.config.verify.schedule is not None:
        dags["verify"] = verify_dag_id(source.name)
    dags["backfill"] = backfill_dag_id(source.name)
    return ActionList(
        actions=[Action(kind=kind, dag_id=dag, allowed=_may_run(user, dag)) for kind, dag in dags.items()]
    )


def _may_run(user: GetUserDep, dag: str) -> bool:
    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    )
