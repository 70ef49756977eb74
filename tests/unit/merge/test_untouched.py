"""A merge looks at a bounded number of the tables that it does not change."""

from __future__ import annotations

from collections import Counter

from cdc_lib.merge import untouched
from cdc_lib.merge.untouched import AT_ONCE, looked_at

TABLES = [f"lake.shop.t{number}" for number in range(5_000)]


def test_few_tables_are_all_looked_at():
    assert looked_at("m", TABLES[:AT_ONCE], ()) == frozenset(TABLES[:AT_ONCE])


def test_of_many_tables_as_many_are_looked_at_as_ever_and_the_same_by_a_repeated_merge():
    first = looked_at("m", TABLES, ())
    assert len(first) == AT_ONCE
    assert first == looked_at("m", list(reversed(TABLES)), ())


def test_each_table_has_its_turn():
    """The number of merges until the last one had it, for 10 turns on average."""
    left, merges = set(TABLES), 0
    while left:
        left -= looked_at(f"merge-{merges}", TABLES, ())
        merges += 1
    assert merges < 200


def test_tables_with_similar_names_have_equal_turns(monkeypatch):
    monkeypatch.setattr(untouched, "AT_ONCE", 1)
    turns = Counter(name for merge in range(1_000) for name in looked_at(f"merge-{merge}", TABLES[:5], ()))
    assert min(turns[name] for name in TABLES[:5]) > 100


def test_tables_that_are_due_are_looked_at_in_any_case_and_others_never():
    chosen = looked_at("m", TABLES, {TABLES[7], TABLES[8], "lake.shop.changed"})
    assert {TABLES[7], TABLES[8]} < chosen
    assert chosen < set(TABLES)
    assert len(chosen) <= AT_ONCE + 2
