"""The privileges of the connected user, and the GRANT statements that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.errors import SourceError
from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted
from cdc_lib.mysql.connection import translated
from cdc_lib.mysql.statements import rows_of

_LINE = re.compile(r"^(?P<kind>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>\S.*?) (?:TO|FROM) ", re.DOTALL)
_SCOPE = re.compile(r"^(?:\*|`(?P<database>(?:[^`]|``)+)`)\.(?:\*|`(?P<table>(?:[^`]|``)+)`)$")
_COLUMNS = re.compile(r"\([^)]*\)")
_ALL = "ALL PRIVILEGES"
_SHOWN = 20
_SYNONYMS = {"BINLOG MONITOR": ("BINLOG MONITOR", "REPLICATION CLIENT")}
"""MariaDB used the second name before 10.5."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of SHOW GRANTS.

    Args:
        privileges: in upper case, without those on single columns.
        database: pattern of the databases (``%``, ``_``, escapes by backslash); None for all.
        table: None for all.
        revoked: whether it is a partial revoke of MySQL.
    """

    privileges: frozenset[str]
    database: str | None
    table: str | None
    revoked: bool = False

    def gives(self, privilege: str) -> bool:
        """Whether it contains the privilege."""
        return bool({_ALL, *_SYNONYMS.get(privilege, (privilege,))} & self.privileges)

    def covers(self, database: str, table: str | None) -> bool:
        """Whether it applies to a table, or to all of a database."""
        if self.database is not None and not _like(self.database).fullmatch(database):
            return False
        return self.table is None or self.table == table


def parse_grants(lines: Iterable[str]) -> list[Grant]:
    """Parse SHOW GRANTS; lines about roles and proxies are ignored."""
    grants = []
    for line in lines:
        parts = _LINE.match(line)
        scope = _SCOPE.match(parts["scope"].removeprefix("TABLE ")) if parts else None
        if parts is None or scope is None:
            continue
        named = (name.strip().upper() for name in _COLUMNS.sub("()", parts["privileges"]).split(","))
        database, table = (text.replace("``", "`") if text else None for text in (scope["database"], scope["table"]))
        privileges = frozenset(name for name in named if not name.endswith("()"))
        grants.append(Grant(privileges, database, table, parts["kind"] == "REVOKE"))
    return grants


def missing_grants(
    grants: Sequence[Grant], account: str, flavor: str, tables: Sequence[tuple[str, str | None]]
) -> Iterator[str]:
    """Yield the GRANT statements that a user lacks.

    Args:
        grants: of the user.
        account: the user as a statement names it, for example ``'cdc'@'%'``.
        flavor: ``mysql`` or ``mariadb``.
        tables: database and table of what is captured; None for every table of the database.
    """
    monitor = "BINLOG MONITOR" if flavor == "mariadb" else "REPLICATION CLIENT"
    global_grants = [grant for grant in grants if grant.database is None and not grant.revoked]
    lacking = [name for name in ("REPLICATION SLAVE", monitor) if not any(grant.gives(name) for grant in global_grants)]
    if lacking:
        yield f"GRANT {', '.join(lacking)} ON *.* TO {account};"
    for database, table in dict.fromkeys(tables):
        if not _may_select(grants, database, table):
            name = "*" if table is None else _quoted(table)
            yield f"GRANT SELECT ON {_quoted(database)}.{name} TO {account};"


def _may_select(grants: Sequence[Grant], database: str, table: str | None) -> bool:
    matching = [grant for grant in grants if grant.gives("SELECT") and grant.covers(database, table)]
    revoked = any(grant.revoked for grant in matching)
    return any(not grant.revoked and (grant.database is not None or not revoked) for grant in matching)


def read_grants(connection: Connection[Any]) -> tuple[list[Grant], str]:
    """Return the grants of this session's user, including its active roles, and its account.

    Raises:
        SourceError: the server refuses the statement.
    """
    try:
        lines = [str(line) for (line,) in rows_of(connection, "SHOW GRANTS")]
        account = account_of(connection)
        role = str(rows_of(connection, "SELECT CURRENT_ROLE()")[0][0] or "NONE")
        mariadb = "mariadb" in str(rows_of(connection, "SELECT VERSION()")[0][0]).lower()
        if role != "NONE":  # MySQL returns it quoted; MariaDB has at most one active role
            more = f"SHOW GRANTS FOR {_quoted(role)}" if mariadb else f"SHOW GRANTS FOR CURRENT_USER() USING {role}"
            lines += [str(line) for (line,) in rows_of(connection, more)]
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error
    return parse_grants(lines), account


def account_of(connection: Connection[Any]) -> str:
    """Return the account of this session as in a GRANT statement."""
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
        what = f"the user {account} lacks SELECT on {counted(len(missing) - _SHOWN, 'more table')}"
        yield Finding("error", what, f"GRANT SELECT ON *.* TO {account};")
    if not missing:
        yield Finding("ok", f"the user {account} has the privileges that are needed")


def _like(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(p) or re.escape(p[-1]) for p in parts), re.DOTALL)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")
