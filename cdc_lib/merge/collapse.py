"""Collapses the changes of each row to the last one, by the order key.

The rule is engine-neutral SQL: Spark runs it, and tests check it with a faster engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import OP

DELETE = "d"
"""The ``_op`` that deletes a row; every other one leaves the row as the change shows it."""

INSERT = "c"
"""The ``_op`` of an inserted row."""

READ = "r"
"""The ``_op`` of a row that was read by SELECT: by a snapshot, a repair, or because the binlog had it incomplete."""

RANK = "_cdc_rank"
"""A column that the SELECT adds; always 1."""

MISSING = "cdc_missing"
"""A column of completed last changes: names of the columns that a row still lacks; empty for a complete row."""

Quote = Callable[[str], str]


def last_change_sql(relation: str, key: Sequence[str], quote: Quote, tie_breaker: str = "") -> str:
    """Return a SELECT of the last change of each key.

    The order key is compared number by number. If an update gives a row a key that the same event freed, two changes have
    the same order key: the one that is no delete wins.

    Args:
        relation: SQL of the relation to select from; its order columns have the lake's names.
        key: names of the primary key's columns.
        quote: quotes a name for the engine.
        tie_breaker: SQL expression that decides between two equal changes: the least wins; empty for none.
    """
    order = ", ".join(f"{quote(name)} DESC" for name in ORDER)
    deleted = f"CASE WHEN {quote(OP)} = '{DELETE}' THEN 1 ELSE 0 END"
    keys = ", ".join(map(quote, key))
    by = ", ".join(filter(None, (order, deleted, tie_breaker)))
    rank = f"row_number() OVER (PARTITION BY {keys} ORDER BY {by}) AS {RANK}"
    return f"SELECT * FROM (SELECT *, {rank} FROM {relation}) AS ranked WHERE {RANK} = 1"  # noqa: S608 - names are quoted
