"""Whether the rows of tables show their table in a shared lake table: for many tables at once, and as for each of them."""

from __future__ import annotations

from collections import Counter

import pytest

from cdc_lib.lake.routing import LakeMerge, RoutedTable, indistinct, indistinct_tables
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.route import Target

MANY = 200


def lake(name, *routed):
    """A lake table of tables, each with the keys that its rows get."""
    tables = tuple(
        RoutedTable(*table.split("."), Target("shop", name, routed=True, keys=keys)) for table, keys in routed
    )
    return LakeMerge(LakeName("lake", ("shop",), name), tables)


@pytest.mark.parametrize(
    ("lakes", "expected"),
    [
        ([lake("one", ("a.t", ()))], set()),
        ([lake("all", ("a.t", ()), ("a.u", ()))], {"a.t", "a.u"}),
        ([lake("all", ("a.t", ("table",)), ("a.u", ("table",)))], set()),
        ([lake("all", ("a.t", ("table",)), ("b.t", ("table",)), ("b.u", ("table",)))], {"a.t", "b.t"}),
        ([lake("all", ("a.t", ("schema", "table")), ("b.t", ("schema",)), ("b.u", ("schema", "table")))], {"b.t"}),
        ([lake("twice", ("a.t", ()), ("a.t", ())), lake("all", ("a.t", ("table",)), ("a.u", ()))], {"a.u"}),
    ],
)
def test_many_tables_at_once_are_judged_as_each_of_them(lakes, expected):
    tables = {table for one in lakes for table in one.tables}
    assert indistinct_tables("shop", lakes) == expected
    assert {table for table in tables if indistinct("shop", table, lakes)} == expected


def test_many_tables_are_gone_over_once(monkeypatch):
    """The plan of a merge beside 5,000 snapshots compared each of 5,000 tables with all others."""
    made, read = Counter(), RoutedTable.table.fget
    constants = Target.constants

    def counted(name, real):
        def call(*arguments):
            made[name] += 1
            return real(*arguments)

        return call

    monkeypatch.setattr(RoutedTable, "table", property(counted("names", read)))
    monkeypatch.setattr(Target, "constants", counted("constants", constants))
    shared = lake("all", *((f"a.t{number}", ("table",)) for number in range(MANY)))
    alone = [lake(f"t{number}", (f"b.t{number}", ())) for number in range(MANY)]
    assert indistinct_tables("shop", [shared, *alone]) == frozenset()
    assert made["names"] <= 4 * MANY
    assert made["constants"] <= 2 * MANY
