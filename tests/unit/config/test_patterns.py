from __future__ import annotations

import pytest

from cdc_lib.config.patterns import (
    captured,
    matches,
    matches_column,
    problem,
    problem_of_column,
    reaches,
    unmatched,
)


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
    """Every other character is literal, also brackets and plus signs."""
    assert matches(pattern, database, table) is expected


def test_a_wildcard_for_the_database_does_not_reach_into_the_table():
    """The dot parts the two names."""
    assert not matches("*.orders", "shop", "x.orders_old")
    assert matches("*.orders", "shop.eu", "orders")


def test_an_exclusion_wins_over_every_inclusion():
    """However exactly a table is included."""
    assert not captured(["shop.orders"], ["shop.*"], "shop", "orders")


@pytest.mark.parametrize("database", ["mysql", "sys", "performance_schema", "information_schema"])
def test_tables_of_the_server_itself_are_never_captured(database):
    """Not even by a pattern for everything."""
    assert not captured(["*.*"], [], database, "user")
    assert problem(f"{database}.*") is not None


def test_a_database_that_only_looks_like_one_of_the_server_is_captured():
    """Where case counts, as it does on Linux, ``SYS`` is a database of a user."""
    assert captured(["*.*"], [], "SYS", "orders")
    assert problem("SYS.*") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "orders",
        "shop.",
        ".orders",
        "",
        ".",
        " shop.orders",
        "shop.a.b",
        "`shop`.",
        "``.a",
        "`shop.a",
        "mysql.*",
        "`mysql`.x",
    ],
)
def test_what_cannot_be_a_pattern_is_explained(pattern):
    """Before a source runs and captures nothing."""
    assert problem(pattern)


@pytest.mark.parametrize("pattern", ["*.*", "shop.*", "shop.order lines", "Größe.maß", "my*.*"])
def test_odd_but_possible_names_are_patterns(pattern):
    """MySQL allows blanks inside names and letters of any language."""
    assert problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "table", "expected"),
    [
        (r"/^shop_\d+\.orders$/", "shop_12.orders", True),
        (r"/^shop_\d+\.orders$/", "shop_12.orders_old", False),
        (r"/^shop_\d+\.orders$/", "my_shop_12.orders", False),
        (r"/orders/", "any.old_orders_2", True),
        (r"/^(a|b)\.[xy]$/", "b.y", True),
        (r"/^a\.B$/", "a.b", False),
    ],
)
def test_a_regular_expression_is_looked_for_in_the_whole_name(pattern, table, expected):
    """The ends are held by `^` and `$` alone; names compare with their case."""
    assert matches(pattern, *table.split(".")) is expected
    assert captured([pattern], [], *table.split(".")) is expected


@pytest.mark.parametrize("pattern", ["/", "//", "/a", "/(/", "/*/", "/[a/"])
def test_a_wrong_regular_expression_is_explained(pattern):
    """For tables and for columns."""
    assert problem(pattern)
    assert problem_of_column(pattern)


@pytest.mark.parametrize(
    ("pattern", "column", "expected"),
    [
        ("mail", "MAIL", True),
        ("mail", "email", False),
        ("*mail", "eMail", True),
        ("/^pass/", "Password", True),
        ("p?n", "pin", True),
        ("\u03a3*", "\u03c3", True),
        ("\u03c2", "\u03c3", False),
        ("s", "\u017f", False),
    ],
)
def test_columns_are_named_without_their_case(pattern, column, expected):
    """MySQL takes them so on every system."""
    assert matches_column(pattern, column) is expected


@pytest.mark.parametrize(
    ("pattern", "database", "expected"),
    [
        ("shop.orders", "shop", True),
        ("shop.*", "shop2", False),
        ("*.orders", "mysql", False),
        (r"/^shop_\d+\.orders$/", "shop_7", True),
        (r"/^shop_\d+\.orders$/", "shop_7x", False),
        (r"/^a\.x$|^b\.y$/", "b", True),
        ("/orders/", "any", True),
        (r"/^[a\.b]/", "z", True),
    ],
)
def test_a_database_is_reached_when_one_of_its_tables_may_be_captured(pattern, database, expected):
    """A DROP DATABASE must not pass by unseen; where an expression cannot be cut in two, every database counts."""
    assert reaches([pattern], database) is expected


@pytest.mark.parametrize(
    ("pattern", "pair", "expected"),
    [
        ("w.`y.z`", ("w", "y.z"), True),
        ("w.`y.z`", ("w.y", "z"), False),
        ("`w.y`.z", ("w.y", "z"), True),
        ("`w.y`.*", ("w.y", "z"), True),
        ("`w.y`.*", ("w", "y.z"), False),
        ("shop.`a*`", ("shop", "a*"), True),
        ("shop.`a*`", ("shop", "ab"), False),
        ("`a``b`.c", ("a`b", "c"), True),
        (r"/^w\.`y\.z`$/", ("w", "y.z"), True),
        (r"/^w\.`y\.z`$/", ("w.y", "z"), False),
    ],
)
def test_a_name_in_backticks_is_taken_literally(pattern, pair, expected):
    """So that two tables whose names differ by the place of a dot are two."""
    assert problem(pattern) is None
    assert matches(pattern, *pair) is expected


def test_patterns_that_name_nothing_are_found():
    """Of those that are given, in their order."""
    tables = [("w", "y.z"), ("shop", "orders")]
    assert unmatched(["`w.y`.*", "shop.*", "/x/", "w.`y.z`"], tables) == ["`w.y`.*", "/x/"]
