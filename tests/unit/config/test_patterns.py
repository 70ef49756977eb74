from __future__ import annotations

import pytest

from cdc_lib.config.patterns import captured, matches, problem, select


@pytest.mark.parametrize(
    ("pattern", "database", "table", "expected"),
    [
        ("shop.*", "shop", "orders", True),
        ("shop.*", "shop", "a.b", True),
        ("shop.*", "shop2", "orders", False),
        ("shop.order?", "shop", "orders", True),
        ("shop.order?", "shop", "order", False),
        ("*.orders", "any", "orders", True),
        ("sh*p.o*s", "shop", "orders", True),
        ("shop.[ab]", "shop", "a", False),
        ("shop.[ab]", "shop", "[ab]", True),
        ("shop.a+b", "shop", "aab", False),
        ("shop.orders", "shop", "Orders", False),
        ("shop.*", "shop", "two\nlines", True),
    ],
)
def test_only_the_star_and_the_question_mark_are_wild(pattern, database, table, expected):
    """Every other character, brackets and plus signs included, stands for itself."""
    assert matches(pattern, database, table) is expected


def test_a_wildcard_for_the_database_does_not_reach_into_the_table():
    """The dot parts the two names."""
    assert not matches("*.orders", "shop", "x.orders_old")
    assert matches("*.orders", "shop.eu", "orders")


def test_an_exclusion_wins_over_every_inclusion():
    """However exactly a table is included."""
    assert not captured(["shop.orders"], ["shop.*"], "shop", "orders")


@pytest.mark.parametrize("database", ["mysql", "sys", "performance_schema", "information_schema", "MYSQL"])
def test_tables_of_the_server_itself_are_never_captured(database):
    """Not even by a pattern for everything."""
    assert not captured(["*.*"], [], database, "user")


def test_selecting_keeps_the_order_of_the_tables():
    """The result follows the server's list, not the patterns."""
    tables = [("shop", "b"), ("shop", "a"), ("other", "a"), ("shop", "tmp_1")]
    assert select(["shop.*"], ["shop.tmp_*"], tables) == [("shop", "b"), ("shop", "a")]


@pytest.mark.parametrize(
    "pattern", ["orders", "shop.", ".orders", "", ".", " shop.orders", "`shop`.`orders`", "mysql.*"]
)
def test_what_cannot_be_a_pattern_is_explained(pattern):
    """Before a source runs and captures nothing."""
    assert problem(pattern)


@pytest.mark.parametrize("pattern", ["*.*", "shop.*", "shop.order lines", "Größe.maß", "my*.*"])
def test_odd_but_possible_names_are_patterns(pattern):
    """MySQL allows blanks inside names and letters of any language."""
    assert problem(pattern) is None
