"""The server that work was planned for, and what makes its binlog incomplete."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from cdc_lib.config import ServerConfig
from cdc_lib.errors import ReplicatedChangesNotLogged, ServerChanged
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.server_facts import ServerFacts, read_facts

GRANT_MONITOR = (
    "GRANT SLAVE MONITOR ON *.* TO the user of the source file: then it is seen whether the server is a replica."
)

_AFTER_FAILOVER = "The next plan follows the failover, or reports why it cannot."


def unlogged_of(facts: ServerFacts) -> tuple[str, str] | None:
    """Return why the binlog lacks changes that the server replicates, and a hint; None if it has all of them."""
    if facts.logs_replicated or facts.replicates is False:
        return None
    name = log_updates_variable(facts)
    more = f"Read its primary instead, or start the server with {name}=ON"
    after = "Then take new snapshots of all tables: what was replicated before is in no binlog file."
    if facts.replicates is None:
        return (
            f"{name} is OFF, the server has replicated changes, and this user may not see whether it still does",
            f"{GRANT_MONITOR} If it is a replica: {more}. {after}",
        )
    return (
        f"the server is a replica with {name}=OFF: its binlog lacks the changes that it replicates",
        f"{more}. {after}",
    )


def log_updates_variable(facts: ServerFacts) -> str:
    """Return the name of the variable at this server."""
    return "log_replica_updates" if "log_replica_updates" in facts.variables else "log_slave_updates"


def refuse_unlogged(facts: ServerFacts, source: str) -> None:
    """Refuse a replica that does not log what it replicates.

    Raises:
        ReplicatedChangesNotLogged: its binlog lacks changes, or it cannot be known that it has all.
    """
    if (unlogged := unlogged_of(facts)) is not None:
        what, hint = unlogged
        raise ReplicatedChangesNotLogged(what, hint=hint, source=source)


def facts_of_cursor(
    connection: Connection[Any], server: ServerConfig, cursor: Cursor, hint: str = _AFTER_FAILOVER
) -> ServerFacts:
    """Return the facts of the server, which must be the one of a cursor; its binlog may be incomplete.

    Args:
        connection: to the server.
        server: its section of the source file.
        cursor: the drain cursor.
        hint: of the error.

    Raises:
        ServerChanged: another server answers.
    """
    facts = read_facts(connection, server)
    if not facts.identity.is_same_server(cursor.identity):
        raise ServerChanged(
            f"the cursor belongs to {cursor.identity}, but {facts.identity} answers", hint=hint, source=cursor.source
        )
    return facts


def facts_of_planned(
    connection: Connection[Any], server: ServerConfig, identity: ServerIdentity, source: str
) -> ServerFacts:
    """Return the facts of the server, which must be the one that the work was planned for, with a complete binlog.

    Raises:
        ServerChanged: another server answers.
        ReplicatedChangesNotLogged: the server has become a replica that does not log what it replicates.
    """
    facts = read_facts(connection, server)
    if not facts.identity.is_same_server(identity):
        raise ServerChanged(
            f"the work was planned for {identity}, but {facts.identity} answers",
            hint="Point the source file at the former server, or start a new source with a snapshot.",
            source=source,
        )
    refuse_unlogged(facts, source)
    return facts
