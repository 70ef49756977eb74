"""What a user may do at a server, read from its own grants, and the GRANT statements that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.errors import SourceError
from cdc_lib.model.finding import Finding
from cdc_lib.mysql.connection import translated
from cdc_lib.mysql.server_facts import rows_of

_LINE = re.compile(r"^(?P<kind>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>\S.*?) (?:TO|FROM) ", re.DOTALL)
_SCOPE = re.compile(r"^(?:\*|`(?P<database>(?:[^`]|``)+)`)\.(?:\*|`(?P<table>(?:[^`]|``)+)`)$")
_COLUMNS = re.compile(r"\([^)]*\)")
_ALL = "ALL PRIVILEGES"
_SHOWN = 20
_SYNONYMS = {"BINLOG MONITOR": ("BINLOG MONITOR", "REPLICATION CLIENT")}
"""MariaDB took the second name up to 10.5."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of SHOW GRANTS.

    Args:
        privileges: in upper case; those on single columns are left out.
        database: pattern of the databases (``%``, ``_``, escapes by backslash); None for all.
        table: None for all.
        revoked: whether it takes away, as MySQL's partial revokes do.
    """

    privileges: frozenset[str]
    database: str | None
    table: str | None
    revoked: bool = False

    def gives(self, privilege: str) -> bool:
        """Whether the privilege is in it."""
        return bool({_ALL, *_SYNONYMS.get(privilege, (privilege,))} & self.privileges)

    def covers(self, database: str, table: str | None) -> bool:
        """Whether it holds for a table, or for all of a database."""
        if self.database is not None and not _like(self.database).fullmatch(database):
            return False
        return self.table is None or self.table == table


def parse_grants(lines: Iterable[str]) -> list[Grant]:
    """Return what SHOW GRANTS says; lines about roles and proxies say nothing here."""
    found = []
    for line in lines:
        parts = _LINE.match(line)
        scope = _SCOPE.match(parts["scope"].removeprefix("TABLE ")) if parts else None
        if parts is None or scope is None:
            continue
        named = (name.strip().upper() for name in _COLUMNS.sub("()", parts["privileges"]).split(","))
        database, table = (text.replace("``", "`") if text else None for text in (scope["database"], scope["table"]))
        privileges = frozenset(name for name in named if not name.endswith("()"))
        found.append(Grant(privileges, database, table, parts["kind"] == "REVOKE"))
    return found


def missing_grants(
    grants: Sequence[Grant], account: str, flavor: str, tables: Sequence[tuple[str, str | None]]
) -> Iterator[str]:
    """Yield the statements that a user needs and does not have.

    Args:
        grants: of the user.
        account: the user as a statement names it, for example ``'cdc'@'%'``.
        flavor: ``mysql`` or ``mariadb``.
        tables: database and table of what is captured; None for every table of the database.
    """
    monitor = "BINLOG MONITOR" if flavor == "mariadb" else "REPLICATION CLIENT"
    everywhere = [one for one in grants if one.database is None and not one.revoked]
    lacking = [name for name in ("REPLICATION SLAVE", monitor) if not any(one.gives(name) for one in everywhere)]
    if lacking:
        yield f"GRANT {', '.join(lacking)} ON *.* TO {account};"
    for database, table in dict.fromkeys(tables):
        if not _may_select(grants, database, table):
            name = "*" if table is None else _quoted(table)
            yield f"GRANT SELECT ON {_quoted(database)}.{name} TO {account};"


def _may_select(grants: Sequence[Grant], database: str, table: str | None) -> bool:
    fitting = [one for one in grants if one.gives("SELECT") and one.covers(database, table)]
    revoked = any(one.revoked for one in fitting)
    return any(not one.revoked and (one.database is not None or not revoked) for one in fitting)


def read_grants(connection: Connection[Any]) -> tuple[list[Grant], str]:
    """Return the grants of this session's user, those of its active roles among them, and its account.

    Raises:
        SourceError: the server refuses to tell.
    """
    try:
        lines = [str(line) for (line,) in rows_of(connection, "SHOW GRANTS")]
        account = account_of(connection)
        role = str(rows_of(connection, "SELECT CURRENT_ROLE()")[0][0] or "NONE")
        mariadb = "mariadb" in str(rows_of(connection, "SELECT VERSION()")[0][0]).lower()
        if role != "NONE":  # the server quotes it for MySQL; MariaDB has one at a time
            more = f"SHOW GRANTS FOR {_quoted(role)}" if mariadb else f"SHOW GRANTS FOR CURRENT_USER() USING {role}"
            lines += [str(line) for (line,) in rows_of(connection, more)]
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error
    return parse_grants(lines), account


def account_of(connection: Connection[Any]) -> str:
    """Return the account of this session as a GRANT statement names it."""
    user, _, host = str(rows_of(connection, "SELECT CURRENT_USER()")[0][0]).rpartition("@")
    return f"'{_escaped(user)}'@'{_escaped(host)}'"


def judge_grants(
    connection: Connection[Any], flavor: str, tables: Sequence[tuple[str, str | None]]
) -> Iterator[Finding]:
    """Yield one finding per missing GRANT statement.

    Args:
        connection: a session of the user.
        flavor: of the server.
        tables: as in :func:`missing_grants`.
    """
    try:
        grants, account = read_grants(connection)
    except SourceError as error:
        yield Finding("warning", f"the user's grants cannot be read: {error.message}", error.hint)
        return
    missing = list(missing_grants(grants, account, flavor, tables))
    for statement in missing[:_SHOWN]:
        yield Finding("error", f"the user {account} lacks a privilege", statement)
    if len(missing) > _SHOWN:
        what = f"the user {account} lacks SELECT on {len(missing) - _SHOWN} more tables"
        yield Finding("error", what, f"GRANT SELECT ON *.* TO {account};")
    if not missing:
        yield Finding("ok", f"the user {account} has the privileges that are needed")


def _like(pattern: str) -> re.Pattern[str]:
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(p) or re.escape(p[-1]) for p in pieces), re.DOTALL)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")
