"""Fills a shop with rows that follow from a seed, made by the server itself, so that 200,000 take seconds.

Every value is a function of (seed, table, row number, column) through CRC32 and SHA2, which answer alike on every
server. The session runs in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from demo.shop.schema import TABLES

FIRST_CROSSING_ORDER = 2**63
"""Half of the seeded orders lie below this id, the others above."""

BATCH_ROWS = 20_000
SHARES = {
    "customers": 0.10,
    "products": 0.03,
    "orders": 0.20,
    "order_items": 0.40,
    "payments": 0.14,
    "inventory": 0.06,
    "page_views": 0.07,
}

_DIGITS = " UNION ALL ".join(f"SELECT {digit}{' AS d' if digit == 0 else ''}" for digit in range(10))
_NUMBERS = (
    f"(SELECT a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d AS k FROM ({_DIGITS}) a, ({_DIGITS}) b, ({_DIGITS}) c, "
    f"({_DIGITS}) e, (SELECT 0 AS d UNION ALL SELECT 1) f) numbers"
)


@dataclass(frozen=True)
class Sizes:
    """How many rows each table starts with."""

    customers: int
    products: int
    orders: int
    order_items: int
    payments: int
    inventory: int
    page_views: int

    @classmethod
    def of(cls, rows: int) -> Sizes:
        """Distribute about this many rows over the tables, at least twelve each."""
        return cls(**{table: max(12, int(rows * share)) for table, share in SHARES.items()})

    @property
    def first_order(self) -> int:
        """The smallest order id."""
        return FIRST_CROSSING_ORDER - self.orders // 2


def create(connection: Connection[Any], database: str = "shop") -> None:
    """Create the database and its empty tables."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
        cursor.execute(f"USE `{database}`")
        for statement in TABLES.values():
            cursor.execute(statement)


def fill(
    connection: Connection[Any], rows: int, seed: int = 1, on_progress: Callable[[str, int], None] = lambda _t, _n: None
) -> Sizes:
    """Insert the seed rows into the connection's current database.

    Args:
        connection: with the shop's database selected.
        rows: approximate total number of rows.
        seed: seed of the values.
        on_progress: called with a table's name and the rows inserted into it, after each transaction.
    """
    sizes = Sizes.of(rows)
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SET NAMES utf8mb4")
        for table, expressions in _expressions(sizes).items():
            total = getattr(sizes, table)
            for first in range(0, total, BATCH_ROWS):
                count = min(BATCH_ROWS, total - first)
                _insert(cursor, table, expressions, seed, first, count)
                connection.commit()
                on_progress(table, count)
    return sizes


def _insert(cursor: Any, table: str, expressions: dict[str, str], seed: int, first: int, count: int) -> None:
    """Insert rows ``first`` to ``first + count`` in one statement.

    In the expressions ``n`` is the row's number and ``{column}`` a random unsigned 32-bit number.
    """
    columns = ", ".join(f"`{name}`" for name in expressions)
    values = ", ".join(
        text.replace("#", f"CRC32(CONCAT('{seed}/{table}/{name}/', n))") for name, text in expressions.items()
    )
    cursor.execute(
        f"INSERT INTO `{table}` ({columns}) SELECT {values} "
        f"FROM (SELECT {first} + k AS n FROM {_NUMBERS} WHERE k < {count}) rows_to_make ORDER BY n"
    )


def _sometimes_null(text: str, one_in: int = 9) -> str:
    return f"IF((# DIV 7) % {one_in} = 0, NULL, {text})"


def _expressions(sizes: Sizes) -> dict[str, dict[str, str]]:
    """Return, by table and column, the SQL of a value; ``#`` is the column's random number, ``n`` the row's."""
    null = _sometimes_null
    return {
        "customers": {
            "id": "n + 1",
            "public_id": "IF(# % 50 = 0, UNHEX(CONCAT(SUBSTR(SHA2(#, 256), 1, 28), '0000')), UNHEX(SUBSTR(SHA2(#, 256), 1, 32)))",
            "email": "CONCAT('customer', n, '@shop', # % 90, '.example')",
            "name": null("CONCAT(ELT(# % 6 + 1, 'Zoë', '李小龍', 'Jürgen 🚲', 'Ada', '🛒🧡', 'O''Brien'), ' ', n)"),
            "legacy_name": null("ELT(# % 5 + 1, 'Müller', 'Ångström', '€uro Shop', 'plain', '')"),
            "tier": null("# % 4 + 1"),
            "interests": null("# % 32"),
            "newsletter": null("# % 2"),
            "consents": null("# % 4096"),
            "birthday": null("DATE_ADD('1930-01-01', INTERVAL # % 29000 DAY)"),
            "balance": null("(CAST(# AS SIGNED) - 2000000000) / 100"),
            "preferences": null(
                "JSON_OBJECT('theme', ELT(# % 3 + 1, 'dark', 'light', 'größer ☀'), 'page', # % 100, 'ratio', "
                "(# % 1000) / 8e0, 'tags', JSON_ARRAY(# % 7, 'a\\\\b \"q\"', NULL))"
            ),
            "avatar": null("UNHEX(REPEAT(SHA2(#, 256), # % 5))"),
            "created_at": null("DATE_ADD('2020-01-01', INTERVAL # * 41000 MICROSECOND)"),
            "seen_at": null("DATE_ADD('2024-01-01', INTERVAL # % 60000000 SECOND)"),
        },
        "products": {
            "id": "n + 1",
            "sku": "CONCAT('SKU-', LPAD(n, 8, '0'))",
            "title": null("CONCAT(ELT(# % 5 + 1, 'Teapot 🫖', 'Café crème', 'Lamp', 'Ω meter', 'Rad'), ' No. ', n)"),
            "description": null("REPEAT(CONCAT('It is a good one — ', SHA2(#, 256), '. '), # % 9)"),
            "legacy_text": null("REPEAT('naïve ½ £ ', # % 12)"),
            "price": null("(# % 10000000) / 100"),
            "weight": null("(# % 100000) / 7"),
            "volume": null("(CAST(# AS SIGNED) - 2000000000) / 12345.678"),
            "attributes": null(
                "JSON_OBJECT('colour', ELT(# % 3 + 1, 'red', 'blue', 'grün'), 'sizes', JSON_ARRAY(1, 2.5))"
            ),
            "picture": null("UNHEX(REPEAT(SHA2(#, 256), # % 40))"),
            "on_sale": null("# % 2"),
            "launched": null("1990 + # % 40"),
            "updated_at": null("DATE_ADD('2025-01-01', INTERVAL # % 30000000000 * 1000 MICROSECOND)"),
        },
        "orders": {
            "id": f"CAST({sizes.first_order} AS UNSIGNED) + n",
            "customer_id": null(f"# % {sizes.customers} + 1"),
            "status": null("# % 5 + 1"),
            "total": null("(CAST(# AS SIGNED) - 100000) / 100"),
            "placed_at": null("DATE_ADD('2025-01-01', INTERVAL # * 7001 MICROSECOND)"),
            "paid_at": null("DATE_ADD('2025-02-01', INTERVAL # % 20000000 SECOND)"),
            "deliver_on": null("DATE_ADD('2025-03-01', INTERVAL # % 300 DAY)"),
            "deliver_after": null("SEC_TO_TIME(# % 86400)"),
            "handling": null("ELT(# % 4 + 1, '-12:34:56.000001', '00:00:00.5', '838:59:59.000000', '-00:00:00.25')"),
            "channel": null("ELT(# % 3 + 1, 'web', 'téléphone', 'Straße')"),
            "note": null("CONCAT('Please ring twice 🔔 ', SHA2(#, 256))", 3),
            "updated_at": null("DATE_ADD('2025-01-01', INTERVAL # * 7001 MICROSECOND)"),
        },
        "order_items": {
            "order_id": f"CAST({sizes.first_order} AS UNSIGNED) + n DIV 2",
            "line_no": "n % 2 + 1",
            "product_id": null(f"# % {sizes.products} + 1"),
            "quantity": null("# % 16777216"),
            "price": null("(# % 100000) / 100"),
            "discount": null("(# % 9999) / 10000"),
            "points": null("CAST(# % 16777216 AS SIGNED) - 8388608"),
            "gift_code": null("SUBSTR(SHA2(#, 256), 1, # % 9)"),
            "remark": null("ELT(# % 4 + 1, '', ' leading and trailing ', 'für Oma 🎁', 'x')", 3),
        },
        "payments": {
            "id": "CAST(n AS SIGNED) - 100",
            "order_id": null(f"CAST({sizes.first_order} AS UNSIGNED) + # % {sizes.orders}"),
            "method": null("# % 4 + 1"),
            "amount": null("(CAST(# AS SIGNED) - 2000000000) * 1000003 / 10000"),
            "rate": null("(# + 0.1) / 3e9"),
            "fee": null("# / 1e6"),
            "receipt": null("UNHEX(SUBSTR(SHA2(#, 256), 1, 2 * (# % 20)))"),
            "answer": null("JSON_OBJECT('code', # % 600, 'ok', IF(# % 2 = 0, TRUE, FALSE), 'big', #)"),
            "settled_on": null("DATE_ADD('2025-01-01', INTERVAL # % 400 DAY)"),
            "created_at": null("DATE_ADD('2025-01-01', INTERVAL # * 7001 MICROSECOND)"),
        },
        "inventory": {
            "sku": "CONCAT('SKU-', LPAD(n DIV 2, 8, '0'))",
            "warehouse": "n % 2 + 200",
            "on_hand": null("CAST(# AS SIGNED) - 2147483648"),
            "reserved": null("CAST(# % 65536 AS SIGNED) - 32768"),
            "reorder_at": null("CAST(# % 256 AS SIGNED) - 128"),
            "capacity": null("#"),
            "shelf": null("CONCAT('Gäng ', # % 100)"),
            "counted_at": null("DATE_ADD('2025-01-01', INTERVAL # * 7000 MICROSECOND)"),
        },
        "page_views": {
            "visitor": null("UNHEX(SUBSTR(SHA2(# % 500, 256), 1, 16))"),
            "url": null("CONCAT('/product/', # % 40)"),
            "referrer": null("ELT(# % 3 + 1, 'https://search.example/?q=té', '', 'mail')", 3),
            "status": null("ELT(# % 4 + 1, 200, 200, 404, -1)"),
            "duration": null("SEC_TO_TIME((# % 100000) / 1000)"),
            "viewed_at": null("DATE_ADD('2025-06-01', INTERVAL # % 900000 * 1000000 MICROSECOND)"),
        },
    }
