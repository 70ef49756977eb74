"""The rows of a table after its changes, to compare with the rows that SELECT shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from tests.harness.generated.random_tables import Table

Row = Mapping[str, Any]
UTC = "SET time_zone = '+00:00'"


def folded(table: Table, changes: Iterable[Row]) -> Counter[str]:
    """Apply changes in their order and return the rows that result, with the count of each.

    Only the table's final columns count; a column that was added later is NULL in earlier changes.
    """
    by_key: dict[tuple[str, ...], str] = {}
    bag: Counter[str] = Counter()
    for change in changes:
        text = repr({column.name: plain(change.get(column.name)) for column in table.columns})
        key = tuple(repr(plain(change[column.name])) for column in table.key)
        if not table.key:
            bag[text] += -1 if change["_op"] == "d" else 1
        elif change["_op"] == "d":
            assert by_key.pop(key, None) is not None, f"delete of missing key {key}"
        else:
            assert change["_op"] == "u" or key not in by_key, f"insert of existing key {key}"
            by_key[key] = text
    if table.key:
        return Counter(by_key.values())
    assert min(bag.values(), default=0) >= 0, "delete of a missing row"
    return +bag


def selected(server, database: str, table: Table) -> Counter[str]:
    """Return the rows that SELECT shows in UTC."""
    shown = ", ".join(column.type.shown.format(column.name) for column in table.columns)
    with server.connect(database=database, init_command=UTC) as session, session.cursor() as cursor:
        cursor.execute(f"SELECT {shown} FROM {table.name}")
        names = [column.name for column in table.columns]
        return Counter(repr({n: plain(v) for n, v in zip(names, row, strict=True)}) for row in cursor.fetchall())


def plain(value: Any) -> Any:
    """Return a value in a form that both sides share: whole decimals as int, times without time zone."""
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value.replace(tzinfo=None) if getattr(value, "tzinfo", None) else value
