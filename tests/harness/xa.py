"""XA transactions on a real server."""

from __future__ import annotations

from tests.harness.servers import SqlServer


def prepare(server: SqlServer, database: str, xid: str, *statements: str) -> None:
    """Run statements in an XA transaction and prepare it; the session ends, the transaction stays."""
    _run(server, database, f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}")


def commit(server: SqlServer, xid: str) -> None:
    """Commit from another session, as a transaction manager does after a crash."""
    server.execute(f"XA COMMIT {xid}")


def rollback(server: SqlServer, xid: str) -> None:
    """Roll back from another session."""
    server.execute(f"XA ROLLBACK {xid}")


def in_one_phase(server: SqlServer, database: str, xid: str, *statements: str) -> None:
    """Commit an XA transaction in one phase."""
    _run(server, database, f"XA START {xid}", *statements, f"XA END {xid}", f"XA COMMIT {xid} ONE PHASE")


def rollback_all(server: SqlServer) -> None:
    """Roll back all prepared transactions, for the next tests."""
    for format_id, gtrid, _, data in server.execute("XA RECOVER"):
        raw = data if isinstance(data, bytes) else data.encode()
        server.execute(f"XA ROLLBACK X'{raw[:gtrid].hex()}',X'{raw[gtrid:].hex()}',{format_id}")


def _run(server: SqlServer, database: str, *statements: str) -> None:
    with server.connect(database=database) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
