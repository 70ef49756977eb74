"""SQL over lake tables: which columns are read, what is refused, and that DuckDB sees whole tables."""

from __future__ import annotations

import pytest
from pyiceberg.types import IntegerType, LongType, StringType

from cdc_lib.errors import ConfigError
from cdc_lib.read.sql import query
from tests.harness.lake.hand_made_table import HandMadeTable

ROWS = [{"id": n, "Total": n * 10, "state": "odd" if n % 2 else "even"} for n in range(100)]


@pytest.fixture
def reader(tmp_path):
    """A table of ten row groups, in two files."""
    made = HandMadeTable(tmp_path, {"id": LongType(), "Total": IntegerType(), "state": StringType()}, ("id",))
    made.add(ROWS[:50], 10)
    made.add(ROWS[50:], 10)
    return made.reader()


@pytest.fixture
def ask(reader):
    return lambda sql, *tables: query(sql, tables or ("shop.orders",), lambda _: reader).read_all().to_pylist()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) AS n FROM shop.orders", [{"n": 100}]),
        ("SELECT o.state, sum(total) AS t FROM SHOP.Orders o GROUP BY 1 ORDER BY 1 LIMIT 1", [{"state": "even", "t": 24500}]),
        ("SELECT a.id FROM shop.orders a JOIN shop.orders b ON a.id = b.total ORDER BY a.id DESC LIMIT 1", [{"id": 90}]),
        ("SELECT * FROM shop.orders WHERE id = 7", [ROWS[7]]),
        ("SELECT * EXCLUDE (state) FROM shop.orders WHERE id = 7", [{"id": 7, "Total": 70}]),
        ("SELECT o FROM shop.orders o WHERE id = 7", [{"o": ROWS[7]}]),
        ("SELECT columns('T.*') FROM shop.orders WHERE id = 7", [{"Total": 70}]),
        ("SELECT count(*) AS n FROM shop.orders a NATURAL JOIN (SELECT id, 'odd' AS state FROM shop.orders) b", [{"n": 50}]),
        ("SELECT count(*) AS n FROM shop.orders a JOIN shop.orders b USING (id)", [{"n": 100}]),
        ("WITH x AS (SELECT * FROM shop.orders) SELECT max(total) AS m FROM x", [{"m": 990}]),
        ("SELECT id FROM shop.orders WHERE total = (SELECT max(total) FROM shop.orders)", [{"id": 99}]),
        ("SELECT state FROM shop.orders WHERE id = 1 UNION ALL BY NAME SELECT state, id FROM shop.orders WHERE id = 2 ORDER BY state",
         [{"state": "even", "id": 2}, {"state": "odd", "id": None}]),
    ],
)  # fmt: skip
def test_a_query_has_the_result_of_whole_tables(ask, sql, expected):
    """Also where the columns that it uses cannot be seen from its text."""
    assert ask(sql) == expected


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT state, count(*) FROM shop.orders GROUP BY state", ["state"]),
        ("SELECT count(*) FROM shop.orders", ["id"]),
        ("SELECT sum(o.id) FROM shop.orders o WHERE o.total > 5", ["id", "Total"]),
        ("SELECT * FROM shop.orders", ["id", "Total", "state"]),
        ("SELECT o FROM shop.orders o", ["id", "Total", "state"]),
    ],
)
def test_only_columns_that_a_plain_query_names_are_read(ask, reader, monkeypatch, sql, read):
    asked, rows = [], reader.rows
    monkeypatch.setattr(reader, "rows", lambda columns: asked.append(list(columns)) or rows(columns))
    ask(sql)
    assert asked == [read]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM shop.other", "the lake has no table shop.other"),
        ("SELECT * FROM orders", "the lake has no table orders"),
        ("SELECT * FROM x.shop.orders", "the lake has no table x.shop.orders"),
        ("SELECT nothing FROM shop.orders", "the query was refused: .*nothing"),
        ("SELECT", "the query was refused|cannot be parsed"),
        ("SELECT (", "cannot be parsed"),
        (f"SELECT {'(' * 3000}1{')' * 3000}", "cannot be parsed: its brackets are nested too deeply"),
        ("", "is not one query"),
        ("SELECT 1; SELECT 2", "is not one query"),
        ("DROP TABLE shop.orders", "is not one query"),
        ("DELETE FROM shop.orders", "is not one query"),
        ("ATTACH '/tmp/x.db'", "is not one query"),
        ("SET enable_external_access = true", "is not one query"),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "is not one query"),
        ("SELECT * FROM read_csv('/etc/passwd')", "the lake has no table"),
        ("SELECT * FROM '/etc/passwd'", "the lake has no table"),
        ("SELECT * FROM read_text('/etc/passwd') JOIN shop.orders ON true", "the lake has no table"),
        ("SELECT (SELECT content FROM read_text('/etc/passwd'))", "the lake has no table"),
        ("FROM reader", "the lake has no table"),
    ],
)
def test_other_statements_files_and_variables_are_refused(ask, sql, error):
    with pytest.raises(ConfigError, match=error):
        ask(sql)


def test_names_that_differ_in_case_alone_are_refused(ask):
    """DuckDB ignores case."""
    tables = ("shop.orders", "shop.ORDERS", "shop.items")
    with pytest.raises(ConfigError, match=r"can be shop\.ORDERS or shop\.orders"):
        ask("SELECT * FROM shop.orders", *tables)
    assert ask("SELECT count(*) AS n FROM shop.items", *tables) == [{"n": 100}]


def test_names_that_need_quotes_are_tables_too(ask):
    assert ask('SELECT count(*) AS n FROM "my shop"."a.b"', "my shop.`a.b`") == [{"n": 100}]
