"""Binlog retention of Amazon RDS and Aurora: a table of theirs, not a variable of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.mysql.statements import rows_of
from cdc_lib.mysql.unsupported import is_aurora

_NAME = "binlog retention hours"
_DENIED, _NO_TABLE = (1044, 1142), 1146
MOST_HOURS, MOST_HOURS_AURORA = 168, 2160
"""Greatest ``binlog retention hours`` of RDS for MySQL and of Aurora MySQL."""


@dataclass(frozen=True, slots=True)
class RdsRetention:
    """How long Amazon RDS or Aurora keeps binlog files.

    Args:
        hours: the number of hours; None for NULL: files are purged as soon as possible.
        hidden: whether the user may not read it.
        most_hours: the greatest number that the service takes.
    """

    hours: float | None
    hidden: bool = False
    most_hours: int = MOST_HOURS


def read_rds_retention(connection: Connection[Any], variables: Mapping[str, str]) -> RdsRetention | None:
    """Return the retention that ``mysql.rds_configuration`` sets; None at other servers.

    A server that hides the table counts as RDS only if its variables show that it is.
    """
    most = MOST_HOURS_AURORA if is_aurora(variables) else MOST_HOURS
    try:
        rows = rows_of(connection, "SELECT value FROM mysql.rds_configuration WHERE name = %s", (_NAME,))
    except (pymysql.err.ProgrammingError, pymysql.err.OperationalError) as error:
        if error.args[0] not in (*_DENIED, _NO_TABLE):
            raise
        return RdsRetention(None, hidden=True, most_hours=most) if is_rds(variables) else None
    value = rows[0][0] if rows else None
    return RdsRetention(None if value is None else float(value), most_hours=most)


def is_rds(variables: Mapping[str, str]) -> bool:
    """Whether the variables show Amazon RDS or Aurora: its programs are in ``/rdsdbbin``."""
    return is_aurora(variables) or variables.get("basedir", "").startswith("/rdsdbbin")
