"""``GET /sources/{dag_id}/actions``: what this user may ask for. Asking is a DAG run, made by Airflow's own API.

So Airflow authorises each, and its audit log names the user. Nothing here changes anything.
"""

from __future__ import annotations

from typing import Literal, get_args

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import select

from cdc_airflow.dag_ids import Kind, dag_id
from cdc_airflow.page.listed import MAY_READ, ASource

DagState = Literal["ready", "paused", "missing"]

router = APIRouter(dependencies=[MAY_READ])


class Action(BaseModel):
    """One thing that this user may ask for: a run of a DAG, with what its form takes as parameters.

    A run of a paused DAG waits until somebody unpauses it. A DAG that somebody deleted is missing until Airflow reads its file again.
    """

    kind: Kind
    dag_id: str
    state: DagState


class ActionList(BaseModel):
    """What this user may ask for of a source; nothing of what others may."""

    actions: list[Action]


@router.get("/sources/{dag_id}/actions")
def list_actions(source: ASource, user: GetUserDep) -> ActionList:
    """Return the DAGs of a source that this user may run."""
    # `cover` comes by a schedule alone; an erasure is asked for where its values are asked for.
    dags = {kind: dag_id(source.name, kind) for kind in get_args(Kind) if kind not in ("cover", "erase")}
    mine = {kind: dag for kind, dag in dags.items() if _may_run(user, dag)}
    states = _states(list(mine.values()))
    return ActionList(
        actions=[Action(kind=kind, dag_id=dag, state=states.get(dag, "missing")) for kind, dag in mine.items()]
    )


def _states(dags: list[str]) -> dict[str, DagState]:
    """Return the states of those DAGs that Airflow has."""
    known = select(DagModel.dag_id, DagModel.is_paused).where(DagModel.dag_id.in_(dags), DagModel.is_stale.is_(False))
    with create_session() as session:
        return {dag: "paused" if paused else "ready" for dag, paused in session.execute(known)}


def _may_run(user: GetUserDep, dag: str) -> bool:
    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    )
