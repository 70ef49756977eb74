"""Classifies a server's error number: a connection, a temporary or a permanent error of a table. Pure."""

from __future__ import annotations

from cdc_lib.errors import SourceError, SourceUnavailable, TableUnreadable

_OF_CONNECTION = frozenset(
    {
        *(0, 1053, 1317, 1927, 3169, 4031),  # closed here, shutting down, killed, idle for too long
        *(
            1040,
            1042,
            1043,
            1129,
            1130,
            1203,
            1226,
            3032,
            3159,
        ),  # too many connections, a host or session that is not let in
        *(1077, 1079, 1080, 1081, *range(1152, 1162), 1184),  # shutdown and network errors
        *range(2000, 3000),  # the driver's own
    }
)
_PASSING = frozenset({1205, 1213, 1412, 1637, 1969, 3024, 3572})
"""Lock wait timeouts, deadlocks, changed definitions, statement timeouts."""
NO_SUCH_TABLE = frozenset({1049, 1051, 1109, 1146})
"""No such database, no such table."""

_HINTS = {
    1142: "GRANT SELECT on it to the user of the source file.",
    1143: "GRANT SELECT on all of its columns to the user of the source file.",
    1168: "Repair its list of tables (ALTER TABLE ... UNION=(...)), or leave it out (tables.exclude).",
    1814: "ALTER TABLE ... IMPORT TABLESPACE, or leave it out (tables.exclude).",
}
_HINT = "CHECK TABLE shows what is wrong with it. Repair or drop it, or leave it out (tables.exclude)."


def is_of_connection(number: int) -> bool:
    """Whether a server's or driver's error number is about the connection or session, and not about a statement."""
    return number in _OF_CONNECTION


def is_passing(number: int) -> bool:
    """Whether the same statement may succeed later without manual action."""
    return number in _PASSING


def refused_for(table: str, number: int, text: str) -> SourceError:
    """Return the error for a server's refusal to read a table.

    Args:
        table: ``database.table``.
        number: number of the server's error.
        text: message of the server's error.
    """
    if is_of_connection(number):
        return SourceUnavailable(
            f"the server ended the connection: {text} ({number})", hint="The task can be tried again.", table=table
        )
    if is_passing(number):
        return SourceUnavailable(
            f"a table cannot be read at the moment: {text} ({number})",
            hint="Somebody locks or alters it: SHOW FULL PROCESSLIST names the session; KILL it if it does not end.",
            table=table,
        )
    hint = _HINTS.get(number, _HINT)
    return TableUnreadable(
        f"the server refuses to read a table: {text} ({number})", hint=hint, table=table, number=number
    )
