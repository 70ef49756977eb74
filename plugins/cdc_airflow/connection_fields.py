"""What a connection of Airflow has in its fields, and the errors of one that lacks something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseHook
from pydantic import BaseModel, ValidationError

from cdc_airflow.airflow_versions import AirflowNotFoundException
from cdc_lib.config.explain import explain
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Connection

Settings = TypeVar("Settings", bound=BaseModel)


def named_connection(conn_id: str, team: str | None = None) -> Connection:
    """Return a connection of Airflow.

    Args:
        conn_id: its id.
        team: in the API server, whose connections count too; a task has those of its own team.

    Raises:
        ConfigError: there is none of this id.
    """
    try:
        if team is None:
            return BaseHook.get_connection(conn_id)
        from airflow.models.connection import Connection as StoredConnection

        return StoredConnection.get_connection_from_secrets(conn_id, team_name=team)
    except AirflowNotFoundException as error:
        raise ConfigError(
            f"there is no Airflow connection {conn_id}", hint="Add it under Admin → Connections."
        ) from error


def lacking(connection: Connection, what: str) -> ConfigError:
    """Return the error of a connection that lacks something."""
    return ConfigError(
        f"the Airflow connection {connection.conn_id} has no {what}", hint="Add it under Admin → Connections."
    )


def extra_of(connection: Connection) -> dict[str, Any]:
    """Return the fields of a connection's extra."""
    return dict(connection.extra_dejson)


def checked(kind: type[Settings], given: Mapping[str, Any], connection: Connection) -> Settings:
    """Return what a connection gives as a checked section of a source file.

    Raises:
        ConfigError: something is wrong with it.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, path))} {text}" for path, text in explain(error, kind, given))
        what = f"the Airflow connection {connection.conn_id} cannot be used: {problems}"
        raise ConfigError(what, hint="Correct it under Admin → Connections.") from None
