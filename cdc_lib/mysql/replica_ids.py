"""Whether a ``server.server_id`` of the source file collides with another server's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.model.finding import Finding
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.mysql.statements import rows_of

_REMOVE = "Remove server.server_id from the source file: an id is derived for each window."


def judge_replica_id(own: int | None, server_id: int, replicas: Collection[int]) -> Iterator[Finding]:
    """Yield a finding about the id of the source's binlog dumps.

    Args:
        own: of the source file; None if it is derived.
        server_id: of the server that is read.
        replicas: ids of the replicas that are registered at it.
    """
    if own is None:
        return
    if own == server_id:
        yield Finding("warning", f"server.server_id is {own}, which is the server's own", _REMOVE)
    elif own in replicas:
        yield Finding(
            "warning", f"server.server_id is {own}, which is a replica's: each ends the other's binlog dumps", _REMOVE
        )
    else:
        yield Finding("ok", f"server.server_id is {own}: windows that are drained in parallel end each other's dumps")


def registered_replicas(connection: Connection[Any], facts: ServerFacts) -> list[int]:
    """Return the ids of the replicas that are registered at the server; none if this user may not see them."""
    old = facts.identity.flavor == "mariadb" or facts.version < (8, 0, 22)
    try:
        rows = rows_of(connection, "SHOW SLAVE HOSTS" if old else "SHOW REPLICAS")
    except pymysql.MySQLError:  # MariaDB shows them to REPLICATION MASTER ADMIN, which no source needs
        return []
    return [int(row[0]) for row in rows]
