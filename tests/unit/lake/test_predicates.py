"""Predicates of the source file, without Spark."""

from __future__ import annotations

import pytest

from cdc_lib.config.brackets import unended
from cdc_lib.lake.predicates import fault_of

COLUMNS = ["a", "b", "status", "list", "s", "when_made"]


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        ("a = 1) or (1 = 1", "not one predicate"),
        ("a =", "not one predicate of Spark SQL: an operand is missing"),
        ("a = 1 and and b", "an operand is missing"),
        ("a = 1 group by b", "more than one predicate"),
        (f"{'(' * 3000}a = 1{')' * 3000}", "its brackets are nested too deeply"),
        ("a = 1; drop table x", "more than one predicate"),
        ("a = 1 union select 2", "more than one predicate"),
        ("a in (select b from t)", "asks another table"),
        ("statsu <> 'test'", "no column statsu; there are a, b, status"),
        ("exists(list, x -> x > y)", "no column y;"),
    ],
)
def test_a_predicate_that_a_merge_would_refuse_is_refused_without_spark(predicate, says):
    """Before a snapshot of the table is read."""
    assert says in fault_of(predicate, COLUMNS)


RIGHT = [
    "status <> 'test'",
    "`a` > 2 AND `B` IS NOT NULL",
    "exists(list, x -> x > 1)",
    "a like 'x%' escape '!'",
    "s rlike '^(x|[)]$'",
    "a <=> null",
    "when_made >= date '2020-01-01' and when_made < current_date() - interval 1 day",
    "cast(a as decimal(10, 2)) % 2 = 0",
    "list[0] = 1",
    "not case when a = 1 then true else b end",
    "get_json_object(s, '$.a[0]') = 'it\\'s'",
    "a::int = 1",
    'a = "x;y"',
    "s = r'C:\\'",
    "_epoch > 1",
    "`odd;(name` = 1",
]


@pytest.mark.parametrize("predicate", RIGHT)
def test_predicates_that_spark_accepts_are_accepted(predicate):
    """The check has no false errors."""
    assert fault_of(predicate, [*COLUMNS, "odd;(name"]) == ""
    assert unended(predicate) == ""


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        ("(a = 1", "the bracket ( has no end"),
        ("a = 1)", "the bracket ) at character 6 closes none"),
        ("(a[0)", "closes none"),
        ("a = 'x", "the quotation mark ' at character 5 has no end"),
        ("`a = 1", "the quotation mark ` at character 1"),
        ("a = 1; b = 2", "semicolon"),
        ("a = 1 -- b", "a comment"),
        ("a = 1 /* b", "a comment"),
        ("a = 1 and", "nothing is after and"),
        ("a =", "nothing is after ="),
    ],
)
def test_an_incomplete_predicate_is_refused_when_the_file_is_read(predicate, says):
    """With the reason and the place."""
    assert says in unended(predicate)
