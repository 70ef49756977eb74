"""Columns that MariaDB puts into a table automatically: they are in its binlog, and no SELECT shows them.

A UNIQUE key over texts too long for an index is kept by a hash of them in a column ``DB_ROW_HASH_n`` after all others
(``sql/table.cc``, make_unique key with HA_KEY_ALG_LONG_HASH). A table WITH SYSTEM VERSIONING has the times of each row in
``row_start`` and ``row_end``, and keeps the rows of the past among the others: a DELETE is an UPDATE of ``row_end`` in the binlog.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cdc_lib.errors import UnsupportedValue
from cdc_lib.model.schema import Column

VERSIONED = "WITH SYSTEM VERSIONING rows of the past are not distinguished from those of now"
_HASH = re.compile(r"DB_ROW_HASH_[0-9]+")
_PERIOD = ["row_start", "row_end"]


def hidden(columns: Sequence[Column]) -> int:
    """Return how many columns at the end are hashes of the server's own."""
    count = 0
    for column in reversed(columns):
        unsigned = column.type.kind == "int" and column.type.width == 8 and column.type.unsigned
        if not (unsigned and _HASH.fullmatch(column.name)):
            break
        count += 1
    return count


def refuse_versioned(table: str, columns: Sequence[Column], keys: Sequence[int]) -> None:
    """Refuse a table that has the implicit columns of a period; with columns of other names, the plan sees it.

    Args:
        table: its name.
        columns: of the event, without hashes.
        keys: indexes of the primary key's columns, which ``row_end`` is one of.

    Raises:
        UnsupportedValue: it has.
    """
    last = columns[-2:]
    timed = all(c.type.kind == "timestamp" and c.type.scale == 6 and not c.nullable for c in last)
    if [c.name for c in last] == _PERIOD and timed and (not keys or len(columns) - 1 in keys):
        raise versioned_table(table)


def versioned_table(table: str) -> UnsupportedValue:
    """Return the error of a table WITH SYSTEM VERSIONING."""
    what = f"a table that cannot be captured: {VERSIONED}"
    return UnsupportedValue(what, hint="Exclude the table in the source file.", table=table)
