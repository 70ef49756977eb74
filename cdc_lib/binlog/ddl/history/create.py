"""CREATE TABLE with a list of columns."""

from __future__ import annotations

from cdc_lib.binlog.ddl.history.charsets import accept_charset
from cdc_lib.binlog.ddl.history.column import Rules, new_column
from cdc_lib.binlog.ddl.history.draft import Draft
from cdc_lib.binlog.ddl.history.keys import accept_key, is_key, is_secondary_key_or_check
from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader, parted
from cdc_lib.model.schema_version import Definition

_SELECTS = {"SELECT", "AS", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE"}


def created(database: str, table: str, read: WordReader, default: str, rules: Rules) -> Definition:
    """Return the definition of a new table.

    Args:
        database: schema of the table.
        table: its name.
        read: is after the name.
        default: the database's character set.
        rules: what decides beside the words.

    Raises:
        CannotFollow: something in it is not known.
    """
    elements = parted(read.inner())
    draft = Draft(database, table, _options(read, default))
    keys: list[WordReader] = []
    for element in elements:
        one = WordReader(element)
        if one.key() == "PERIOD" and one.key(1) == "FOR":
            raise CannotFollow("it has columns that are not seen")
        if is_key(one):
            keys.append(one)
        else:
            draft.insert(new_column(one, draft.charset, rules))
    for one in keys:
        if is_secondary_key_or_check(one):
            continue
        key = accept_key(one, draft.keys)
        if key is None:
            raise CannotFollow("a key is declared in a way that is not known here")
        draft.add_key(key)
    return draft.definition()


def _options(read: WordReader, default: str) -> str:
    """Return the table's character set; what is after the columns decides nothing else."""
    charset = default
    named = False
    while read.more and read.key() != "PARTITION":
        if read.key() == "(":
            read.inner()
        elif read.key() in ("CHARACTER", "CHARSET", "COLLATE"):
            charset = accept_charset(read, charset if named else default) or charset
            named = True
        elif read.key() in _SELECTS:
            raise CannotFollow("its rows come from a query")
        elif read.accept("WITH", "SYSTEM", "VERSIONING"):
            raise CannotFollow("it has columns that are not seen")
        elif read.take().key in ("COMMENT", "CONNECTION", "PASSWORD", "ENGINE", "ENGINE_ATTRIBUTE"):
            read.accept("=")
            read.take()
    return charset
