"""A table's definition after a statement: pure, and only if certain.

``advance`` is asked for one table (or one database, whose table is empty) at a time and gives its definition after the
statement. What is not understood raises CannotFollow: then the definition is not known from there on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.history.alter import Alter
from cdc_lib.binlog.ddl.history.charsets import accept_charset
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.create import created
from cdc_lib.binlog.ddl.history.draft import Draft
from cdc_lib.binlog.ddl.history.keys import key_of
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.table_name import TableName

_UTF8 = re.compile(r"\butf8(?:_|\b)", re.IGNORECASE)

Entity = tuple[str, str]
"""(database, table); the table is empty for the database itself."""

Before = Callable[[Entity], Definition | None]
"""Gives a definition before the statement; None when there is no such table, CannotFollow when it is not known."""


def advance(entity: Entity, statement: Statement, before: Before, rules: Rules) -> Definition | None:
    """Return a definition after a statement; None when the statement drops it.

    Args:
        entity: whose.
        statement: names it.
        before: definitions before the statement.
        rules: what decides beside the words; the SQL mode is that of the statement.

    Raises:
        CannotFollow: what the statement does to it is not certain.
    """
    read = WordReader(words(statement))
    rules = replace(rules, sql_mode=statement.sql_mode)
    if rules.fold:
        before = _folded(before)
    verb = read.take().key
    if rules.unclear_utf8 and verb in ("CREATE", "ALTER") and _UTF8.search(statement.text):
        raise CannotFollow("which character set utf8 is depends on the session's old_mode")
    read.accept("OR", "REPLACE")
    if read.key() in ("DATABASE", "SCHEMA"):
        read.take()
        return _database(entity, verb, read, statement, before)
    if not entity[1]:
        raise CannotFollow("it is no statement on a database")
    if verb == "RENAME":
        return _renamed(entity, statement, before, fold=rules.fold)
    while read.accept_any("ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"):
        pass
    if read.key() == "INDEX":
        return _index(entity, verb, read, statement, before)
    if not read.accept_any("TABLE", "TABLES"):
        raise CannotFollow("it is no statement on a table")
    if verb == "DROP":
        return None
    if verb == "ALTER":
        return _altered(entity, read, statement.database, before, rules)
    if verb == "CREATE":
        return _created(entity, read, statement, before, rules)
    raise CannotFollow("it is no statement on a definition")


def _folded(before: Before) -> Before:
    return lambda entity: before((entity[0].lower(), entity[1].lower()))


def _known(entity: Entity, before: Before) -> Definition:
    definition = before(entity)
    if definition is None:
        name = TableName(*entity) if entity[1] else entity[0]
        raise CannotFollow(f"the definition of {name} before it is not known")
    return definition


def _database(entity: Entity, verb: str, read: WordReader, statement: Statement, before: Before) -> Definition | None:
    if verb == "DROP":
        return None
    database = entity[0]
    if entity[1]:  # a database that is made has no tables
        makes = verb == "CREATE" and not (read.accept("IF", "NOT", "EXISTS") and before((database, "")) is not None)
        return None if makes else before(entity)
    if verb == "CREATE":
        if read.accept("IF", "NOT", "EXISTS") and (there := before(entity)) is not None:
            return there
        charset = statement.server_charset
    else:
        charset = _known((database, ""), before).charset
    default = statement.server_charset
    while read.more:
        if (named := accept_charset(read, default)) is not None:
            charset = default = named
        else:
            read.take()
    if not charset:
        raise CannotFollow("the server's character set is unknown")
    return Definition(TableSchema(database, "", ()), charset)


def _renamed(entity: Entity, statement: Statement, before: Before, *, fold: bool) -> Definition | None:
    """Follow the pairs of RENAME TABLE from the left to the right."""
    means = meaning(statement.text, statement.database, statement.quotings[0])
    now: dict[Entity, Definition | None] = {}
    for old, new in (means.folded() if fold else means).renamed:
        moved = now[old] if old in now else before(old)
        now[old] = None
        now[new] = None if moved is None else _named(moved, new)
        if new == entity and moved is None:
            raise CannotFollow(f"the definition of {'.'.join(old)} before it is not known")
    return now[entity] if entity in now else before(entity)


def _named(definition: Definition, entity: Entity) -> Definition:
    return replace(definition, schema=replace(definition.schema, database=entity[0], table=entity[1]))


def _index(entity: Entity, verb: str, read: WordReader, statement: Statement, before: Before) -> Definition:
    """Follow CREATE [UNIQUE] INDEX and DROP INDEX."""
    unique = "UNIQUE" in {word.key for word in words(statement)[:5]}
    read.accept("INDEX")
    read.accept("IF", "NOT", "EXISTS") or read.accept("IF", "EXISTS")
    name = read.name()
    draft = Draft.of(_known(entity, before))
    if verb == "DROP":
        draft.drop_key(name)
    elif unique and not any(key.name.lower() == name.lower() for key in draft.keys):
        if "HASH" in {word.key for word in read.left()}:
            raise CannotFollow("whether a key is a hash depends on the engine")
        if read.accept_any("USING", "TYPE"):
            read.take()
        read.accept("ON")
        read.table("")
        draft.add_key(key_of(name, read.inner(), draft.keys))
    return draft.definition()


def _altered(entity: Entity, read: WordReader, database: str, before: Before, rules: Rules) -> Definition | None:
    read.accept("IF", "EXISTS")
    named = read.table(database)
    read.wait()
    draft = Draft.of(_known(named, before))
    name = (draft.database, draft.table)
    Alter(draft, rules).apply(read.rest())
    after = draft.definition()
    if (draft.database, draft.table) == name:
        return after
    renamed = (draft.database.lower(), draft.table.lower()) if rules.fold else (draft.database, draft.table)
    return _named(after, entity) if renamed == entity else None


def _created(entity: Entity, read: WordReader, statement: Statement, before: Before, rules: Rules) -> Definition:
    if read.accept("IF", "NOT", "EXISTS") and (there := _there(entity, before, rules)) is not None:
        return there
    read.table(statement.database)
    inside = WordReader(read.inner()) if read.key() == "(" and read.key(1) == "LIKE" else read
    if inside.accept("LIKE"):
        return _named(_known(inside.table(statement.database), before), entity)
    # A session may set another one, without effect.
    seen = statement.database_charset if entity[0] == statement.database else ""
    return created(*entity, read, _default(entity[0], before) or seen, rules)


def _there(entity: Entity, before: Before, rules: Rules) -> Definition | None:
    """Return what is there before a CREATE TABLE IF NOT EXISTS; MariaDB writes it to its binlog only if nothing was."""
    try:
        return before(entity)
    except CannotFollow:
        if not rules.mariadb:
            raise
        return None


def _default(database: str, before: Before) -> str:
    """Return a database's character set; empty when it is not known, which matters only to tables that name none."""
    try:
        parent = before((database, ""))
    except CannotFollow:
        return ""
    return parent.charset if parent else ""
