"""Foreign keys whose actions change rows, and whether the binlog has these changes.

MariaDB hides them in information_schema from users who have only SELECT. So they are read from SHOW CREATE TABLE: of the
captured tables, of the tables that they refer to, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

import pymysql

from cdc_lib.errors import SourceError, SourceUnavailable
from cdc_lib.model import lexer
from cdc_lib.model.cascades import Cascades, ForeignKey, TableName
from cdc_lib.model.lexer import quoted
from cdc_lib.mysql.connection import Session, translated
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.mysql.statements import lenient_rows_of, rows_of

_LOGS_CASCADES = (9, 6)
"""From this MySQL on, the server and not the storage engine applies foreign keys, unless a start option says otherwise."""
_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")


def logs_cascades(facts: ServerFacts) -> bool:
    """Whether the binlog has the rows that foreign keys change."""
    native = facts.variables.get("innodb_native_foreign_keys", "OFF").upper() in ("ON", "1")
    return facts.identity.flavor == "mysql" and facts.version[:2] >= _LOGS_CASCADES and not native


def cascades_of(
    connection: Session,
    facts: ServerFacts,
    captured: Iterable[TableName],
    known: Cascades | None = None,
    unchanged: Container[TableName] = (),
) -> Cascades:
    """Return the foreign keys that change rows of captured tables, through any number of levels, unseen by the binlog.

    Args:
        connection: its SQL mode is changed.
        facts: of the server.
        captured: the captured tables.
        known: what was returned before.
        unchanged: tables whose keys are among the known ones, because they were not defined again since.

    Raises:
        SourceUnavailable: the connection broke.
        SourceError: the server refuses.
    """
    if logs_cascades(facts):
        return Cascades()
    keys_of: dict[TableName, list[ForeignKey]] = defaultdict(list)
    for key in known.keys if known is not None else ():
        keys_of[key.child].append(key)
    try:
        rows_of(connection, "SET SESSION sql_mode = '', sql_quote_show_create = 1")
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error
    keys: list[ForeignKey] = []
    unseen: list[TableName] = []
    seen: set[TableName] = set()
    pending = list(captured)
    while pending:
        table = pending.pop()
        if table in seen:
            continue
        seen.add(table)
        found = keys_of.get(table, []) if known is not None and table in unchanged else _keys_of(connection, table)
        if found is None:
            unseen.append(table)
            continue
        keys += found
        pending += (key.parent for key in found)
    return Cascades(logged=False, keys=tuple(sorted(keys, key=repr)), unseen=tuple(sorted(unseen)))


def _keys_of(connection: Session, table: TableName) -> list[ForeignKey] | None:
    """Return the foreign keys of a table that change its rows; None if the server does not show them."""
    try:
        ((_, text, *_),) = lenient_rows_of(connection, f"SHOW CREATE TABLE {quoted(table[0])}.{quoted(table[1])}")
    except SourceUnavailable:
        raise
    except (pymysql.MySQLError, SourceError):
        return None  # a captured table that cannot be read is reported where it is read
    return list(keys_in(str(text), table))


def keys_in(definition: str, table: TableName) -> Iterator[ForeignKey]:
    """Yield the foreign keys of a table that change its rows.

    Args:
        definition: of SHOW CREATE TABLE.
        table: its database and name.
    """
    words = list(lexer.words(definition))
    keys = [word.key for word in words]
    for at in (i for i, key in enumerate(keys) if key == "REFERENCES"):
        opens, closes = keys.index("(", at), keys.index(")", at)
        end = next(i for i in range(closes + 1, len(keys)) if keys[i] in (",", ")"))
        rules = " ".join(keys[closes + 1 : end])
        deletes, updates = (any(f"ON {event} {act}" in rules for act in _ACTIONS) for event in ("DELETE", "UPDATE"))
        if deletes or updates:
            parent = [word.text for word in words[at:opens] if word.kind == "name"]
            columns = tuple(word.text for word in words[opens:closes] if word.kind == "name")
            yield ForeignKey(table, (parent[-2] if parent[1:] else table[0], parent[-1]), columns, deletes, updates)
