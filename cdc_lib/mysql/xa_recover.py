"""Prepared XA transactions on the server: a snapshot does not see their rows, whose events may precede the start position.

MySQL shows them only to users with XA_RECOVER_ADMIN, which is required only if the server has ever prepared one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import SourceUnavailable, UnsupportedServer
from cdc_lib.model.finding import Finding
from cdc_lib.model.xa import xid_text
from cdc_lib.mysql.connection import connect, translated
from cdc_lib.mysql.grants import account_of
from cdc_lib.mysql.server_facts import ServerFacts, read_facts
from cdc_lib.mysql.statements import rows_of

WAIT_SECONDS = 10.0
"""How long a transaction manager gets to commit or roll back what is prepared."""
_PAUSE = 0.2
_NOT_ALLOWED = {1227, 1401}
"""Access denied; MySQL says XAER_RMERR when the privilege is missing."""
_SHOWN = 5


def prepared_now(connection: Connection[Any], facts: ServerFacts) -> frozenset[str]:
    """Return the ids of prepared transactions.

    Raises:
        UnsupportedServer: there may be some, and the user may not see them.
    """
    mysql = facts.identity.flavor == "mysql"
    try:
        rows = rows_of(connection, "XA RECOVER CONVERT XID" if mysql else "XA RECOVER")
    except pymysql.MySQLError as error:
        if not error.args or error.args[0] not in _NOT_ALLOWED:
            raise
        if int(rows_of(connection, "SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'")[0][1]) == 0:
            return frozenset()
        raise UnsupportedServer(
            "XA transactions are in use at the server, and this user may not see which are prepared",
            hint=f"GRANT XA_RECOVER_ADMIN ON *.* TO {account_of(connection)};",
        ) from error
    xids = set()
    for format_id, gtrid, _, data in rows:
        raw = bytes.fromhex(data.removeprefix("0x")) if mysql else bytes(data)
        xids.add(xid_text(int(format_id), raw[:gtrid], raw[gtrid:]))
    return frozenset(xids)


def wait_for_decisions(server: ServerConfig, credentials: Credentials, facts: ServerFacts) -> None:
    """Wait until all transactions that are prepared now are committed or rolled back: a later SELECT sees their rows.

    Raises:
        SourceUnavailable: some stay prepared.
        UnsupportedServer: there may be some, and the user may not see them.
    """

    def undecided(connection: Connection[Any], before: frozenset[str] | None) -> frozenset[str]:
        now = prepared_now(connection, facts)
        return now if before is None else before & now

    _wait(server, credentials, undecided)


def facts_without_prepared(server: ServerConfig, credentials: Credentials, facts: ServerFacts) -> ServerFacts:
    """Return facts at whose binlog end no transaction is prepared: later commits have all of their rows after it.

    Raises:
        SourceUnavailable: at every attempt some transaction is prepared.
        UnsupportedServer: there may be some, and the user may not see them.
    """
    attempts = [facts]

    def undecided(connection: Connection[Any], before: frozenset[str] | None) -> frozenset[str]:
        if before is not None:
            before = prepared_now(connection, facts)
            attempts.append(read_facts(connection, server))
        return (before or frozenset()) | prepared_now(connection, facts)

    _wait(server, credentials, undecided)
    return attempts[-1]


def _wait(
    server: ServerConfig,
    credentials: Credentials,
    look: Callable[[Connection[Any], frozenset[str] | None], frozenset[str]],
) -> None:
    connection = connect(server, credentials)
    until = time.monotonic() + WAIT_SECONDS
    try:
        undecided = look(connection, None)
        while undecided and time.monotonic() < until:
            time.sleep(_PAUSE)
            undecided = look(connection, undecided)
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error
    finally:
        connection.close()
    if undecided:
        raise SourceUnavailable(
            "XA transactions are prepared, and their rows would be missed here when they are committed: "
            + "; ".join(sorted(undecided)[:_SHOWN]),
            hint="XA RECOVER CONVERT XID lists them at the server: XA COMMIT or XA ROLLBACK those that nobody else will decide.",
            host=server.host,
            port=server.port,
            prepared=len(undecided),
        )


def judge_prepared(connection: Connection[Any], facts: ServerFacts) -> Iterator[Finding]:
    """Yield a finding about prepared transactions; nothing if there are none."""
    try:
        prepared = prepared_now(connection, facts)
    except UnsupportedServer as error:
        yield Finding("error", error.message, error.hint)
        return
    if prepared:
        yield Finding(
            "warning",
            f"{len(prepared)} XA transactions are prepared and not decided: {'; '.join(sorted(prepared)[:_SHOWN])}",
            "XA COMMIT or XA ROLLBACK those that nobody else will decide; snapshots of new tables wait for them.",
        )
