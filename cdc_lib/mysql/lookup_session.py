"""Sessions that look rows up: on the right server, read-only, with the key used for long lists too."""

from __future__ import annotations

import time

import pymysql

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import ServerChanged, SourceError, SourceUnavailable
from cdc_lib.model.position import Point, Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.connection import Session, connect, translated
from cdc_lib.mysql.server_facts import ServerFacts, read_facts, read_identity
from cdc_lib.mysql.statements import rows_of
from cdc_lib.mysql.watermark import low_watermark

PATIENCE = 10.0
"""Seconds that a lagging server gets to catch up with the merge."""
_PAUSE = 0.5
_UNKNOWN_VARIABLE = 1193
_LONG_LISTS = {"mysql": "range_optimizer_max_mem_size", "mariadb": "in_predicate_conversion_threshold"}
"""Variables that, set to 0, keep a server from a full table scan for a long list of keys."""


def on_server(server: ServerConfig, credentials: Credentials, identity: ServerIdentity) -> tuple[Session, ServerFacts]:
    """Log in to the server that the positions belong to.

    Raises:
        ServerChanged: another server answers.
        SourceError: it cannot be reached, or refuses.
    """
    connection = connect(server, credentials)
    try:
        facts = read_facts(connection, server)
        _refuse_other(facts.identity, identity)
    except BaseException:
        connection.close()
        raise
    return connection, facts


def numbers_of(connection: Session, sql: str) -> list[int]:
    """Return the only column of a SELECT, under the SQL mode in which rows are read.

    Raises:
        SourceError: the server refuses, or the connection broke.
    """
    try:
        # As where rows are read: zero and invalid dates are allowed in comparisons.
        rows_of(connection, "SET sql_mode = 'ALLOW_INVALID_DATES'")
        return [int(row[0]) for row in rows_of(connection, sql)]
    except pymysql.MySQLError as error:
        raise SourceError(f"keys cannot be compared at the source: {error}") from error


def _refuse_other(actual: ServerIdentity, expected: ServerIdentity) -> None:
    if not actual.is_same_server(expected):
        raise ServerChanged(
            f"rows are to be read back from {expected}, but {actual} answers",
            hint="Run the source again: its next plan continues at the other server.",
        )


def watermark_after(
    connection: Session, facts: ServerFacts, epoch: int, stop: Point, *, patience: float = PATIENCE
) -> Position:
    """Return a low watermark at or after a point; every later SELECT sees all changes before it.

    That includes SELECTs of other sessions: what one transaction sees, all later ones see.

    Args:
        connection: a transaction may stay open on it.
        facts: of its server.
        epoch: of the server's positions.
        stop: the point; a point of an earlier epoch lies before every position.
        patience: seconds that the server gets to reach it.

    Raises:
        SourceUnavailable: the server does not reach it in time.
        SourceError: the server refuses.
    """
    until = time.monotonic() + patience
    while Point.at(epoch, watermark := low_watermark(connection, facts)) < stop:
        if time.monotonic() > until:
            raise SourceUnavailable(
                f"the server's binlog ends at {watermark}, before the end of the merge",
                hint="A replica that lags catches up. Where the server lost its last transactions, the next cdc step plan says how to continue.",
            )
        time.sleep(_PAUSE)
    return watermark


def look_up_session(server: ServerConfig, credentials: Credentials, identity: ServerIdentity) -> Session:
    """Open a read-only transaction for one SELECT.

    Raises:
        ServerChanged: another server answers.
        SourceError: it cannot be reached, or refuses.
    """
    connection = connect(server, credentials)
    try:
        _refuse_other(read_identity(connection, server), identity)
        _set_if_known(connection, _LONG_LISTS[identity.flavor])
        rows_of(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        rows_of(connection, "START TRANSACTION READ ONLY")
    except pymysql.MySQLError as error:
        connection.close()
        raise translated(error, connection) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _set_if_known(connection: Session, variable: str) -> None:
    try:
        rows_of(connection, f"SET SESSION {variable} = 0")
    except pymysql.MySQLError as error:
        if error.args[0] != _UNKNOWN_VARIABLE:
            raise
