"""A table's definition while a statement works on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdc_lib.binlog.ddl.history.column import NewColumn
from cdc_lib.binlog.ddl.history.keys import key_of, with_renamed, without_column
from cdc_lib.binlog.ddl.history.types import is_too_long
from cdc_lib.binlog.ddl.history.words import CannotFollow
from cdc_lib.model.lexer import Word
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.schema_version import PRIMARY, Definition, Key, row_key, sorted_keys

_GENERATED_KEY = "my_row_id"
"""Name of the column of ``sql_generate_invisible_primary_key``."""


def _is_hashed(key: Key, types: Mapping[str, SourceType]) -> bool:
    """Whether MariaDB keeps a key by a hash; MySQL has no key of such columns."""
    return key.whole and is_too_long(types[name] for name in key.columns if name in types)


class Draft:
    """Columns and keys that can be changed.

    Args:
        database: schema of the table.
        table: its name.
        charset: its default character set.
        columns: of the table.
        keys: primary and unique ones.
    """

    def __init__(
        self, database: str, table: str, charset: str, columns: Sequence[Column] = (), keys: Sequence[Key] = ()
    ) -> None:
        """Begin with what there is."""
        self.database = database
        self.table = table
        self.charset = charset
        self.columns = list(columns)
        self.keys = list(keys)

    @classmethod
    def of(cls, definition: Definition) -> Draft:
        """Return a draft that says what a definition does."""
        schema = definition.schema
        return cls(schema.database, schema.table, definition.charset, schema.columns, definition.keys)

    def definition(self) -> Definition:
        """Return what is now."""
        primary = next((key for key in self.keys if key.name == PRIMARY), None)
        fixed = {name.lower() for name in primary.columns} if primary else set()
        columns = tuple(replace(c, nullable=c.nullable and c.name.lower() not in fixed) for c in self.columns)
        nullable = frozenset(column.name.lower() for column in columns if column.nullable)
        names = {column.name.lower(): column.name for column in columns}
        types = {column.name: column.type for column in columns}
        named = (replace(key, hashed=key.hashed or _is_hashed(key, types)) for key in with_renamed(self.keys, names))
        keys = sorted_keys(tuple(named), nullable)
        if len(names) != len(columns) or not columns:
            raise CannotFollow("the columns that it leaves are not possible")
        key = row_key(keys, nullable)
        schema = TableSchema(self.database, self.table, columns, key.columns if key else ())
        return Definition(schema, self.charset, keys)

    def index(self, name: str) -> int:
        """Return where a column is."""
        for index, column in enumerate(self.columns):
            if column.name.lower() == name.lower():
                return index
        raise CannotFollow(f"the table has no column {name}")

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return any(column.name.lower() == name.lower() for column in self.columns)

    def drop(self, name: str) -> None:
        """Take a column away, and from the keys."""
        del self.columns[self.index(name)]
        self.keys = without_column(self.keys, name)

    def replace(self, old: str, new: NewColumn) -> None:
        """Put a column in the place of an old one, and its name into the keys."""
        self.columns[self.index(old)] = new.column
        self.keys = with_renamed(self.keys, {old.lower(): new.column.name})
        self._own_keys(new)

    def rename(self, names: dict[str, str]) -> None:
        """Give columns new names, all at once; old names in lower case."""
        for old in names:
            self.index(old)
        self.columns = [replace(c, name=names.get(c.name.lower(), c.name)) for c in self.columns]
        self.keys = with_renamed(self.keys, names)

    def insert(self, new: NewColumn, *, moved: bool = False) -> None:
        """Put a column where its words say, or at the end."""
        if not moved and self.has(new.column.name):
            raise CannotFollow(f"the table has a column {new.column.name} already")
        at = len(self.columns)
        if new.order:
            at = self._front() if new.order == "FIRST" else self.index(new.after) + 1
        self.columns.insert(at, new.column)
        if not moved:
            self._own_keys(new)

    def _front(self) -> int:
        """Return where FIRST puts a column: MySQL keeps a primary key that it generated before it, and no statement shows which that is."""
        if self.columns and self.columns[0].name.lower() == _GENERATED_KEY:
            raise CannotFollow("FIRST may be after a generated invisible primary key")
        return 0

    def move(self, new: NewColumn) -> None:
        """Put a column that is there where its words say."""
        del self.columns[self.index(new.column.name)]
        self.insert(new, moved=True)

    def _own_keys(self, new: NewColumn) -> None:
        if new.primary:
            self.add_key(Key(PRIMARY, (new.column.name,)))
        if new.unique:
            self.add_key(key_of("", [Word(new.column.name, "name", "")], self.keys))

    def add_key(self, key: Key) -> None:
        """Add a key after the others."""
        if any(other.name.lower() == key.name.lower() for other in self.keys):
            raise CannotFollow(f"the table has a key {key.name} already")
        self.keys.append(key)

    def drop_key(self, name: str) -> None:
        """Drop a key by its name; the columns of a primary key continue without NULL. Keys not kept here change nothing."""
        if name.upper() == PRIMARY:
            self.columns = list(self.definition().schema.columns)
        self.keys = [key for key in self.keys if key.name.lower() != name.lower()]
