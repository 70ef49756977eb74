"""Whether a server is a replica that leaves the changes that it replicates out of its binlog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.mysql.statements import rows_of

_NO_PRIVILEGE = 1227
"""ER_SPECIFIC_ACCESS_DENIED_ERROR."""


def logs_replicated(variables: Mapping[str, str]) -> bool:
    """Whether a server logs what it replicates; a server without the variable counts as one that does."""
    value = variables.get("log_replica_updates", variables.get("log_slave_updates", "ON"))
    return value.upper() not in ("OFF", "0")


def is_replica(connection: Connection[Any], version: tuple[int, ...], variables: Mapping[str, str]) -> bool | None:
    """Whether the server has a source to replicate from, running or stopped; None if this user may not see it.

    Without SLAVE MONITOR a user of MariaDB sees how many replication threads run, and the GTIDs that were applied. No thread and
    no GTIDs: nothing was replicated.
    """
    mariadb = "mariadb" in variables["version"].lower()
    if variables.get("wsrep_on", "OFF").upper() == "ON":  # a node of a Galera cluster applies what other nodes write
        return True
    if not mariadb:
        statement = "SHOW SLAVE STATUS" if version < (8, 0, 22) else "SHOW REPLICA STATUS"
        return bool(rows_of(connection, statement))
    try:
        return bool(rows_of(connection, "SHOW ALL SLAVES STATUS"))
    except pymysql.OperationalError as error:
        if error.args[0] != _NO_PRIVILEGE:
            raise
    running = rows_of(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    if running and int(running[0][1]):
        return True
    return None if variables.get("gtid_slave_pos") else False
