"""Versions of a table's definition, each valid from a position on.

A version is written once and never changed. It holds for everything after its position, up to the next version of the same
table. A database has versions too (their table is empty): its character set decides about tables that name none.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema

PRIMARY = "PRIMARY"
"""Name of every primary key."""


@dataclass(frozen=True, slots=True)
class Key:
    """A primary or unique key.

    Args:
        name: of the key.
        columns: in key order.
        whole: whether its parts are columns as a whole, neither prefixes nor expressions.
        hashed: whether MariaDB keeps it by a hash, because it is too long for an index: it identifies no rows in the binlog, and each row
            there has the hash in a column of its own, after all others.
    """

    name: str
    columns: tuple[str, ...]
    whole: bool = True
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A table, or a database, as it is defined at one moment.

    Args:
        schema: columns and key; without columns for a database.
        charset: default character set.
        keys: primary and unique keys in the order of the server.
    """

    schema: TableSchema
    charset: str
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version, as the store keeps it.

    Args:
        source: name of the source.
        epoch: epoch of the position.
        database: schema at the source.
        table: name at the source; empty for the database itself.
        position: the version holds for everything after it: start of the statement that made it, or where it was read for.
        definition: None when it is not known from here on.
        statement: what changed it; empty when it was read from the server.
        unseen: number of changes that were noticed at this position although no statement shows them; 0 for other versions.
    """

    source: str
    epoch: int
    database: str
    table: str
    position: Position
    definition: Definition | None
    statement: str = ""
    unseen: int = 0


def decode_alike(one: Definition, other: Definition) -> bool:
    """Whether rows whose event names no columns have the same values under two definitions.

    Whether a column allows NULL is not compared: of a TIMESTAMP it depends on the server's settings, and each event says it.
    """
    return _decoded(one) == _decoded(other)


def _decoded(definition: Definition) -> tuple[object, ...]:
    """Return what the values of a row depend on."""
    columns = tuple(
        (one.name.lower(), t.kind, t.width, t.unsigned, t.precision, t.scale, t.charset, t.members)
        for one in definition.schema.columns
        for t in (one.type,)
    )
    return columns, tuple(name.lower() for name in definition.schema.primary_key)


def sorted_keys(keys: tuple[Key, ...], nullable: frozenset[str]) -> tuple[Key, ...]:
    """Return keys in the servers' order: primary, unique without NULL, unique.

    Args:
        keys: keys in the order in which they were created.
        nullable: names of the columns that allow NULL, in lower case.
    """

    def rank(key: Key) -> int:
        if key.name == PRIMARY:
            return 0
        return 2 if any(column.lower() in nullable for column in key.columns) else 1

    return tuple(sorted(keys, key=rank))


def row_key(keys: tuple[Key, ...], nullable: frozenset[str]) -> Key | None:
    """Return the key that identifies rows, by the servers' own rule.

    Without a primary key it is the first unique key of whole columns that allow no NULL and is no hash, as in the table maps of both
    servers (MySQL ``sql/dd_table_share.cc``, MariaDB ``sql/table.cc``).

    Args:
        keys: primary and unique keys.
        nullable: names of the columns that allow NULL, in lower case.
    """
    for key in sorted_keys(keys, nullable):
        if key.name == PRIMARY:
            return key
        if key.whole and not key.hashed and not any(column.lower() in nullable for column in key.columns):
            return key
    return None
