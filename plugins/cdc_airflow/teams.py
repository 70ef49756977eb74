"""Airflow's teams (``[core] multi_team``, from Airflow 3.2 on): a DAG belongs to the team of its bundle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.configuration import conf
from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from sqlalchemy import select


def readable(dags: Collection[str], user: BaseUser) -> set[str]:
    """Return the DAGs that a user may read.

    With teams, one that Airflow has not read yet belongs to nobody who is known, and is left out.
    """
    manager = get_auth_manager()
    if not _has_teams():
        return manager.filter_authorized_dag_ids(dag_ids=set(dags), user=user)
    by_team = _by_team(dags).items()
    allowed = (manager.filter_authorized_dag_ids(dag_ids=ids, user=user, team_name=team) for team, ids in by_team)
    return set().union(*allowed)


def team_of(dag: str) -> str | None:
    """Return the team whose connections a DAG has; None without teams."""
    return DagModel.get_team_name(dag) if _has_teams() else None


def _has_teams() -> bool:
    return conf.getboolean("core", "multi_team", fallback=False)


def _by_team(dags: Collection[str]) -> dict[str | None, set[str]]:
    """Return the DAGs that Airflow has read, by team."""
    found: defaultdict[str | None, set[str]] = defaultdict(set)
    with create_session() as session:
        known = list(session.scalars(select(DagModel.dag_id).where(DagModel.dag_id.in_(dags))))
        teams = DagModel.get_dag_id_to_team_name_mapping(known, session=session)
    for dag in known:
        found[teams.get(dag)].add(dag)
    return found
