"""XA transactions on a real server."""

from __future__ import annotations

import time

import pymysql
from pymysql.constants import ER

from tests.harness.servers import SqlServer

_WAIT_SECONDS = 120
"""For how long a decision is sent again. Another session may decide a transaction only when the server has ended the session
that prepared it, some moments after that has closed its connection."""


def prepare(server: SqlServer, database: str, xid: str, *statements: str) -> None:
    """Run statements in an XA transaction and prepare it; the session ends, the transaction stays."""
    _run(server, database, f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}")


def commit(server: SqlServer, xid: str) -> None:
    """Commit from another session, as a transaction manager does after a crash."""
    _decide(server, f"XA COMMIT {xid}")


def rollback(server: SqlServer, xid: str) -> None:
    """Roll back from another session."""
    _decide(server, f"XA ROLLBACK {xid}")


def in_one_phase(server: SqlServer, database: str, xid: str, *statements: str) -> None:
    """Commit an XA transaction in one phase."""
    _run(server, database, f"XA START {xid}", *statements, f"XA END {xid}", f"XA COMMIT {xid} ONE PHASE")


def rollback_all(server: SqlServer) -> None:
    """Roll back all prepared transactions, for the next tests."""
    for format_id, gtrid, _, data in server.execute("XA RECOVER"):
        raw = data if isinstance(data, bytes) else data.encode()
        rollback(server, f"X'{raw[:gtrid].hex()}',X'{raw[gtrid:].hex()}',{format_id}")


def _decide(server: SqlServer, statement: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            server.execute(statement)
        except pymysql.MySQLError as error:
            if error.args[0] != ER.XAER_NOTA or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _run(server: SqlServer, database: str, *statements: str) -> None:
    with server.connect(database=database) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
