"""The rule by which many changes of a row become one: the last one wins, in the order of the order key.

The rule is written as SQL with nothing of one engine in it, so that Spark runs it and a quicker engine checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import OP

DELETE = "d"
"""The ``_op`` after which a row is gone; after every other one it stands as the change shows it."""

RANK = "_cdc_rank"
"""A column that the statement adds; always 1."""

MISSING = "cdc_missing"
"""A column of last changes that were completed: names of the columns that a row still lacks; empty for a whole row."""

Quote = Callable[[str], str]


def last_change_sql(relation: str, key: Sequence[str], quote: Quote, then: str = "") -> str:
    """Return a SELECT of the last change of each key.

    The order key is compared number by number. Where an update changed a row's key to one that the same event freed, two
    changes share an order key: the one that leaves a row standing comes last.

    Args:
        relation: what to select from, ready to stand in SQL; its order columns bear the lake's names.
        key: names of the primary key's columns.
        quote: quotes a name for the engine.
        then: what decides between two that are alike so far, ready to stand in SQL; the least wins. Nothing when empty.
    """
    order = ", ".join(f"{quote(name)} DESC" for name in ORDER)
    gone = f"CASE WHEN {quote(OP)} = '{DELETE}' THEN 1 ELSE 0 END"
    keys = ", ".join(map(quote, key))
    by = ", ".join(filter(None, (order, gone, then)))
    rank = f"row_number() OVER (PARTITION BY {keys} ORDER BY {by}) AS {RANK}"
    return f"SELECT * FROM (SELECT *, {rank} FROM {relation}) AS ranked WHERE {RANK} = 1"  # noqa: S608 - names are quoted
