"""ALTER TABLE, clause by clause.

Both servers work in three steps (MySQL ``mysql_prepare_alter_table`` in ``sql/sql_table.cc``): drops and changes in place
first, then columns that are added or moved in the order of their clauses, then keys. A default character set counts for all
of the statement, wherever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.binlog.ddl.history.charsets import accept_charset
from cdc_lib.binlog.ddl.history.column import NewColumn, Rules, new_column
from cdc_lib.binlog.ddl.history.draft import Draft
from cdc_lib.binlog.ddl.history.keys import accept_key, is_key, is_secondary_key_or_check
from cdc_lib.binlog.ddl.history.types import converted
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, clauses, parted, words
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.model.column_types import LONG_BYTES, LONG_TEXTS
from cdc_lib.model.lexer import Word
from cdc_lib.model.schema import Column
from cdc_lib.model.schema_version import PRIMARY, Key

_CHARSET = {"CHARACTER", "CHARSET", "COLLATE"}
_WITHOUT_EFFECT = {
    "ALGORITHM", "ANALYZE", "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECK", "CHECKSUM", "COALESCE", "COMMENT",
    "COMPRESSION", "CONNECTION", "DATA", "DELAY_KEY_WRITE", "DISABLE", "DISCARD", "EXCHANGE", "IMPORT", "TRUNCATE", "ENABLE", "ENCRYPTION", "ENGINE", "ENGINE_ATTRIBUTE",
    "FORCE", "INDEX", "INSERT_METHOD", "KEY_BLOCK_SIZE", "LOCK", "MAX_ROWS", "MIN_ROWS", "NOWAIT", "OPTIMIZE", "ORDER",
    "PACK_KEYS", "PAGE_CHECKSUM", "PARTITION", "PASSWORD", "REBUILD", "REMOVE", "REORGANIZE", "REPAIR", "ROW_FORMAT",
    "SECONDARY_ENGINE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
    "STORAGE", "TABLESPACE", "TRANSACTIONAL", "UNION", "WAIT", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED",
    "ENCRYPTION_KEY_ID",
}  # fmt: skip
_OF_PARTITIONS = {
    "ADD", "ANALYZE", "CHECK", "COALESCE", "CONVERT", "DISCARD", "DROP", "EXCHANGE", "IMPORT", "OPTIMIZE", "REBUILD", "REORGANIZE", "REPAIR",
    "TRUNCATE",
}  # fmt: skip
"""Words that, before PARTITION, begin the last clause of a statement; commas in it part partitions."""


def leaves_definition(statement: Statement) -> bool:
    """Whether a CREATE INDEX or ALTER TABLE leaves columns, keys that identify rows, and the default character set as they are."""
    try:
        read = WordReader(words(statement))
        if not read.accept("CREATE"):
            return all(_leaves_definition(clause) for clause in clauses(read))
    except CannotFollow:
        return False
    read.accept_any("FULLTEXT", "SPATIAL", "VECTOR")
    return read.key() == "INDEX"


def _leaves_definition(clause: WordReader) -> bool:
    if any(word.key in _CHARSET for word in clause.left()):
        return False
    if clause.accept("ADD"):
        return clause.key() == "PARTITION" or is_secondary_key_or_check(clause)
    if clause.accept("DROP"):
        return clause.key() in ("FOREIGN", "CHECK", "PARTITION")
    return clause.key() == "ALTER" or clause.key() in _WITHOUT_EFFECT


class Alter:
    """The clauses of one ALTER TABLE, gathered and then applied.

    Args:
        draft: the table.
        rules: what decides beside the words.
    """

    def __init__(self, draft: Draft, rules: Rules) -> None:
        """Begin without a clause."""
        self._draft = draft
        self._rules = rules
        self._drops: list[str] = []
        self._changes: list[tuple[str, NewColumn]] = []
        self._placed: list[tuple[NewColumn, bool]] = []
        self._names: dict[str, str] = {}
        self._dropped_keys: list[str] = []
        self._keys: list[WordReader] = []
        self._key_names: list[tuple[str, str]] = []
        self._converted = ""

    def apply(self, found: Sequence[Word]) -> None:
        """Apply what is after the table's name.

        Raises:
            CannotFollow: a clause is not known, or does not fit the table.
        """
        clauses = [WordReader(part) for part in parted(found) if part]
        last = (i for i, one in enumerate(clauses) if one.key() in _OF_PARTITIONS and one.key(1) == "PARTITION")
        clauses = clauses[: next(last, len(clauses))]
        for clause in [WordReader(part) for part in parted(found) if part]:
            self._defaults(clause)
        for clause in clauses:
            self._take(clause)
        self._work()

    def _defaults(self, clause: WordReader) -> None:
        """Find the table's new default character set."""
        if clause.accept("CONVERT", "TO"):
            charset = accept_charset(clause, "")
            charset = accept_charset(clause, charset or "") or charset
            if not charset:
                raise CannotFollow("the character set to convert to is not named")
            self._converted = self._draft.charset = charset
            self._rules = replace(self._rules, converted=charset)
            return
        if clause.key() in ("ADD", "MODIFY", "CHANGE", "ALTER", "DROP", "RENAME"):
            return
        while clause.more:
            if clause.key() in _CHARSET:
                charset = accept_charset(clause, self._draft.charset)
                self._draft.charset = charset or self._draft.charset
            elif clause.key() == "(":
                clause.inner()
            else:
                clause.take()

    def _take(self, clause: WordReader) -> None:
        key = clause.key()
        if key in _CHARSET or key in ("DEFAULT", "CONVERT"):
            return
        if key in ("WITH", "WITHOUT") and clause.key(1) == "VALIDATION":
            return
        handlers = {
            "ADD": self._add, "DROP": self._drop, "MODIFY": self._change, "CHANGE": self._change, "ALTER": self._alter,
            "RENAME": self._rename,
        }  # fmt: skip
        if key in handlers:
            clause.take()
            handlers[key](clause, key)
        elif key not in _WITHOUT_EFFECT:
            raise CannotFollow(f"the clause {key or '?'} is not known here")

    def _add(self, clause: WordReader, _: str) -> None:
        if clause.key() == "PARTITION" or is_secondary_key_or_check(clause):
            return
        if (clause.key(), clause.key(1)) in (("PERIOD", "FOR"), ("SYSTEM", "VERSIONING")):
            raise CannotFollow("it adds columns that are not seen")
        if is_key(clause):
            self._keys.append(clause)
            return
        clause.accept("COLUMN")
        if_not_there = clause.accept("IF", "NOT", "EXISTS")
        parts = parted(clause.inner()) if clause.key() == "(" else [clause.rest()]
        for part in parts:
            read = WordReader(part)
            if is_secondary_key_or_check(read):
                continue
            if is_key(read):
                self._keys.append(read)
                continue
            new = new_column(read, self._draft.charset, self._rules)
            if not (if_not_there and self._draft.has(new.column.name)):
                self._placed.append((new, False))

    def _drop(self, clause: WordReader, _: str) -> None:
        if clause.accept("PRIMARY", "KEY"):
            self._dropped_keys.append(PRIMARY)
        elif clause.accept_any("INDEX", "KEY", "CONSTRAINT"):
            clause.accept("IF", "EXISTS")
            self._dropped_keys.append(clause.name())
        elif clause.key() in ("FOREIGN", "CHECK", "PARTITION") and clause.key(1):
            return
        elif clause.key() in ("SYSTEM", "PERIOD") and clause.key(1):
            raise CannotFollow("it drops columns that are not seen")
        else:
            clause.accept("COLUMN")
            if_there = clause.accept("IF", "EXISTS")
            name = clause.column()
            if not if_there or self._draft.has(name):
                self._drops.append(name)

    def _change(self, clause: WordReader, key: str) -> None:
        clause.accept("COLUMN")
        if_there = clause.accept("IF", "EXISTS")
        declared = clause.rest()
        read = WordReader(declared)
        old = read.column()
        new = new_column(read if key == "CHANGE" else WordReader(declared), self._draft.charset, self._rules)
        if not if_there or self._draft.has(old):
            self._changes.append((old, new))
            if new.order:
                self._placed.append((new, True))

    def _alter(self, clause: WordReader, _: str) -> None:
        if clause.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
            return
        clause.accept("COLUMN")
        clause.accept("IF", "EXISTS")
        clause.column()
        if clause.key() not in ("SET", "DROP"):
            raise CannotFollow("the clause ALTER is not known here")

    def _rename(self, clause: WordReader, _: str) -> None:
        if clause.accept("COLUMN"):
            clause.accept("IF", "EXISTS")
            old = clause.name()
            clause.accept("TO")
            self._names[old.lower()] = clause.name()
        elif clause.accept_any("INDEX", "KEY"):
            clause.accept("IF", "EXISTS")
            old = clause.name()
            clause.accept("TO")
            self._key_names.append((old, clause.name()))
        else:
            clause.accept_any("TO", "AS", "=")
            self._draft.database, self._draft.table = clause.table(self._draft.database)

    def _work(self) -> None:
        draft = self._draft
        if (self._changes or self._converted) and any(key.hashed for key in draft.keys):
            raise CannotFollow("whether a key is a hash depends on the lengths of its columns")
        for name in self._dropped_keys:
            draft.drop_key(name)
        for old, name in self._key_names:
            draft.keys = [Key(name, k.columns, k.whole) if k.name.lower() == old.lower() else k for k in draft.keys]
        for name in self._drops:
            draft.drop(name)
        if self._converted:
            changed = {old.lower() for old, _ in self._changes}
            draft.columns = [one if one.name.lower() in changed else self._convert(one) for one in draft.columns]
        if self._names:
            draft.rename(self._names)
        # Two passes, because names may be exchanged among the changed columns.
        marks = {old.lower(): f"\0{number}" for number, (old, _) in enumerate(self._changes)}
        draft.rename(marks)
        for old, new in self._changes:
            if self._converted and not self._rules.mariadb and new.column.type.text in {*LONG_TEXTS, *LONG_BYTES}:
                raise CannotFollow("MySQL gives a text that it changes and converts at once another length")
            draft.replace(marks[old.lower()], new)
        for new, moved in self._placed:
            draft.move(new) if moved else draft.insert(new)
        for read in self._keys:
            key = accept_key(read, draft.keys)
            if key is None:
                raise CannotFollow("a key is declared in a way that is not known here")
            draft.add_key(key)

    def _convert(self, column: Column) -> Column:
        """Return a column in the character set that the table is converted to; texts grow to hold as many characters."""
        old, new = column.type.charset, self._converted
        if not old or old in ("binary", new):
            return column
        return Column(column.name, converted(column.type, new).resolve(new, self._rules.typed), column.nullable)
