"""The statements that a server gets."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.servers import SqlServer


def statements_of(server: SqlServer, action: Callable[[], object]) -> list[str]:
    """Return the texts of the statements that a server gets from all sessions while an action runs."""
    server.execute("SET GLOBAL log_output = 'TABLE'")
    server.execute("TRUNCATE TABLE mysql.general_log")
    server.execute("SET GLOBAL general_log = 1")
    try:
        action()
    finally:
        server.execute("SET GLOBAL general_log = 0")
    rows = server.execute("SELECT argument FROM mysql.general_log WHERE command_type = 'Query'")
    return [text.decode() if isinstance(text, bytes) else text for (text,) in rows]
