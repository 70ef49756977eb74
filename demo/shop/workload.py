"""The shop's workload: small transactions, derived from a seed.

They include transactions over several tables, rollbacks, delete and insert of the same key, changed primary keys, changes in a
table without a key, and two ALTER TABLE … ADD COLUMN.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pymysql
from pymysql.connections import Connection

from demo.shop.values import LATIN, STATES, TIERS, Values

ALTERS: dict[int, tuple[str, str, str]] = {
    120: ("customers", "loyalty_points", "INT UNSIGNED NULL AFTER email"),
    240: ("orders", "carrier", "ENUM('post', 'dhl', 'fahrrad 🚲') NULL"),
}
"""By the number of the transaction: table, column and its definition."""


class Workload:
    """Writes to the shop through one connection, transaction by transaction.

    Args:
        connection: connection to the server of a seeded shop.
        database: database of the shop.
        seed: the same seed and the same rows give the same statements.
        alters: see :data:`ALTERS`; an existing column is not added again.
    """

    def __init__(
        self,
        connection: Connection[Any],
        database: str = "shop",
        seed: int = 1,
        alters: dict[int, tuple[str, str, str]] | None = None,
    ) -> None:
        self.connection = connection
        self.cursor = connection.cursor()
        self.random = Random(seed)
        self.values = Values(self.random)
        self.transactions = 0
        self.alters = ALTERS if alters is None else alters
        self.execute(f"USE `{database}`")
        self.execute("SET time_zone = '+00:00'")
        connection.autocommit(False)
        self.first_order, self.next_order = self._bounds("orders")
        _, self.next_customer = self._bounds("customers")
        _, self.next_product = self._bounds("products")
        _, self.next_payment = self._bounds("payments")
        self.renamed = int(
            self._one("SELECT max(CAST(SUBSTR(sku, 5) AS UNSIGNED)) FROM inventory WHERE sku LIKE 'NEW-%'") or 0
        )
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (25, self.order),
            (20, self.progress),
            (8, self.cancel),
            (8, self.sign_up),
            (10, self.edit_customer),
            (3, self.close_account),
            (6, self.reprice),
            (6, self.new_product),
            (8, self.count_stock),
            (4, self.rename_sku),
            (3, self.replace),
            (3, self.change_of_mind),
            (10, self.browse),
            (2, self.correct_views),
            (1, self.forget_views),
        ]

    def step(self) -> None:
        """Run one transaction; sometimes an ALTER TABLE."""
        self.transactions += 1
        if self.transactions in self.alters:
            self.alter(*self.alters[self.transactions])
            return
        weights, steps = zip(*self.steps, strict=True)
        self.random.choices(steps, weights)[0]()
        self.connection.commit()

    def run(self, transactions: int) -> None:
        """Run a number of transactions at full speed."""
        for _ in range(transactions):
            self.step()

    # --- transactions ---

    def order(self) -> None:
        """A new order: four tables in one transaction."""
        order, self.next_order = self.next_order, self.next_order + 1
        values = self.values
        self.execute(
            "INSERT INTO orders (id, customer_id, status, total, placed_at, deliver_on, deliver_after, handling, "
            "channel, note, updated_at) VALUES (%s, %s, 'open', %s, %s, %s, %s, %s, %s, %s, %s)",
            order, self.customer(), values.money(12, 2), values.moment(), values.day(), values.duration(),
            values.duration(), values.latin(), values.name(), values.moment(),
        )  # fmt: skip
        for line in range(1, self.random.randrange(2, 6)):
            product = self.product()
            self.execute(
                "INSERT INTO order_items (order_id, line_no, product_id, quantity, price, discount, points, gift_code, "
                "remark) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                order, line, product, values.maybe(self.random.randrange(2**24)), values.money(8, 2),
                values.money(5, 4), values.maybe(self.random.randrange(-(2**23), 2**23)), values.maybe("gift "),
                values.name(),
            )  # fmt: skip
            self.execute(
                "UPDATE inventory SET on_hand = on_hand - 1 WHERE sku = %s AND on_hand > -2000000000", sku(product)
            )
        self.pay(order)

    def pay(self, order: int) -> None:
        """A payment, with numbers at the ends of their ranges."""
        payment, self.next_payment = self.next_payment, self.next_payment + 1
        values = self.values
        self.execute(
            "INSERT INTO payments (id, order_id, method, amount, rate, fee, receipt, answer, settled_on, created_at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            payment, order, values.maybe(self.random.randrange(1, 5)), values.money(20, 4),
            values.maybe(self.random.choice((0.1, -1e300, 5e-324, 1 / 3))), values.maybe(self.random.choice((0.1, -3e38, 1 / 3))),
            values.blob(64), values.document(), values.day(), values.moment(),
        )  # fmt: skip

    def progress(self) -> None:
        """Orders move on; a statement may change several rows."""
        changes = {"status": self.values.maybe(self.random.choice(STATES)), "updated_at": self.values.moment()}
        if self._has("orders", "carrier"):
            changes["carrier"] = self.values.maybe(self.random.choice(("post", "dhl", "fahrrad 🚲")))
        first = self.any_order()
        last = first + self.random.choice((0, 0, 0, 9))
        self._update("orders", changes, "id BETWEEN %s AND %s", first, last)
        self.execute(
            "UPDATE orders SET paid_at = %s WHERE id = %s", self.values.moment(fraction=False), self.any_order()
        )

    def cancel(self) -> None:
        """An order is deleted, with its items and payments."""
        order = self.any_order()
        self.execute("DELETE FROM order_items WHERE order_id = %s", order)
        self.execute("DELETE FROM payments WHERE id BETWEEN %s AND %s", *([order % 5000] * 2))
        self.execute("DELETE FROM orders WHERE id = %s", order)

    def sign_up(self) -> None:
        """New customers, several in one statement."""
        columns = (
            "id, public_id, email, name, legacy_name, tier, interests, newsletter, consents, birthday, balance, "
            "preferences, avatar, created_at, seen_at"
        )
        for _ in range(self.random.randrange(1, 4)):
            customer, self.next_customer = self.next_customer, self.next_customer + 1
            values = self.values
            self.execute(
                f"INSERT INTO customers ({columns}) VALUES ({', '.join(['%s'] * 15)})",
                customer, self.random.randbytes(14) + self.random.choice((b"\0\0", b" \0", b"ab")), f"c{customer}@shop.example",
                values.name(), values.latin(), values.maybe(self.random.choice(TIERS)), values.interests(),
                values.maybe(self.random.randrange(2)), values.maybe(self.random.randrange(4096)), values.day(),
                values.money(12, 2), values.document(), values.blob(400), values.moment(), values.moment(),
            )  # fmt: skip

    def edit_customer(self) -> None:
        """Documents, pictures and labels change, also a part of a document."""
        customer = self.customer()
        changes: dict[str, Any] = {
            "name": self.values.name(),
            "interests": self.values.interests(),
            "avatar": self.values.blob(400),
            "preferences": self.values.document(),
        }
        if self._has("customers", "loyalty_points"):
            changes["loyalty_points"] = self.values.maybe(self.random.randrange(2**32))
        chosen = self.random.sample(sorted(changes), self.random.randrange(1, len(changes)))
        self._update("customers", {name: changes[name] for name in chosen}, "id = %s", customer)
        self.execute("UPDATE customers SET preferences = JSON_SET(preferences, '$.page', %s) WHERE id = %s",
                     self.random.randrange(10**6), self.customer())  # fmt: skip

    def close_account(self) -> None:
        """A customer is deleted; every third time the same transaction inserts the key again."""
        customer = self.customer()
        self.execute("DELETE FROM customers WHERE id = %s", customer)
        if self.random.randrange(3) == 0:
            self.execute(
                "INSERT INTO customers (id, public_id, email, name) VALUES (%s, %s, 'back@shop.example', %s)",
                customer, self.random.randbytes(16), self.values.name(),
            )  # fmt: skip

    def reprice(self) -> None:
        """One statement over many rows."""
        first = self.product()
        self.execute(
            "UPDATE products SET price = price + 0.01, on_sale = IF(on_sale > 0, 0, 1), weight = %s, updated_at = %s "
            "WHERE id BETWEEN %s AND %s AND price < 90000000",
            self.values.maybe(self.random.random() * 100), self.values.moment(), first, first + 20,
        )  # fmt: skip

    def new_product(self) -> None:
        """A product and its stock, at unsigned numbers beyond the signed range."""
        product, self.next_product = self.next_product, self.next_product + 1
        values = self.values
        self.execute(
            "INSERT INTO products (id, sku, title, description, legacy_text, price, weight, volume, attributes, picture, "
            "on_sale, launched, updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            product, sku(product), values.name(), values.maybe("…" * self.random.randrange(500)), values.latin(),
            values.money(10, 2), values.maybe(self.random.random()), values.maybe(-self.random.random() * 1e100),
            values.document(), values.blob(2000), values.maybe(self.random.randrange(-128, 128)),
            values.maybe(self.random.choice((1901, 1999, 2155))), values.moment(),
        )  # fmt: skip
        for warehouse in (0, 255):
            self.execute(
                "INSERT INTO inventory VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                sku(product), warehouse, -(2**31), values.maybe(self.random.randrange(-(2**15), 2**15)),
                values.maybe(self.random.randrange(-128, 128)), values.maybe(2**32 - 1), values.latin(), values.moment(),
            )  # fmt: skip
        self.execute("DELETE FROM products WHERE id = %s", self.product())

    def count_stock(self) -> None:
        """INSERT … ON DUPLICATE KEY UPDATE."""
        self.execute(
            "INSERT INTO inventory (sku, warehouse, on_hand) VALUES (%s, %s, %s) "
            "ON DUPLICATE KEY UPDATE on_hand = VALUES(on_hand), shelf = %s",
            sku(self.product()), self.random.choice((200, 201)), self.random.randrange(10**6), self.random.choice(LATIN),
        )  # fmt: skip

    def rename_sku(self) -> None:
        """A primary key changes; every second time another row takes the old key."""
        old, self.renamed = sku(self.product()), self.renamed + 1
        self.execute("UPDATE inventory SET sku = %s WHERE sku = %s", f"NEW-{self.renamed}", old)
        if self.renamed % 2 == 0:
            self.execute("UPDATE inventory SET sku = %s WHERE sku = %s", old, f"NEW-{self.renamed - 1}")

    def replace(self) -> None:
        """REPLACE: the server logs a delete and an insert, or an update."""
        self.execute(
            "REPLACE INTO order_items (order_id, line_no, quantity, remark) VALUES (%s, %s, %s, %s)",
            self.any_order(), self.random.randrange(1, 4), self.random.randrange(100), self.values.name(),
        )  # fmt: skip

    def change_of_mind(self) -> None:
        """Changes that are rolled back, completely or to a savepoint, must not reach the lake."""
        self.execute("UPDATE customers SET balance = 0 WHERE id = %s", self.customer())
        self.execute("SAVEPOINT here")
        self.execute("DELETE FROM orders WHERE id = %s", self.any_order())
        if self.random.randrange(2):
            self.execute("ROLLBACK TO here")
        else:
            self.connection.rollback()

    def browse(self) -> None:
        """Rows of the table without a key, some of them duplicates."""
        row = (self.random.randbytes(8), f"/product/{self.product()}", self.values.name(),
               self.values.maybe(self.random.choice((200, 404))), self.values.duration(), self.values.moment())  # fmt: skip
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.execute(
                "INSERT INTO page_views (visitor, url, referrer, status, duration, viewed_at) "
                "VALUES (%s, %s, %s, %s, %s, %s)", *row
            )  # fmt: skip

    def correct_views(self) -> None:
        """An update of some duplicates only."""
        url = f"/product/{self.random.randrange(40)}"
        self.execute("UPDATE page_views SET status = 410 WHERE url = %s AND NOT status <=> 410 LIMIT 3", url)

    def forget_views(self) -> None:
        """A delete of some duplicates only."""
        self.execute("DELETE FROM page_views WHERE url = %s LIMIT 2", f"/product/{self.random.randrange(40)}")

    def alter(self, table: str, column: str, definition: str) -> None:
        """Add a column if it does not exist; DDL commits implicitly."""
        if not self._has(table, column):
            self.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")

    # --- choices ---

    def customer(self) -> int:
        """Return the id of a customer, who may be deleted."""
        return self.random.randrange(1, self.next_customer)

    def product(self) -> int:
        """Return the id of a product, which may be deleted; never the newest, from whose id a later run continues."""
        return self.random.randrange(1, self.next_product - 1)

    def any_order(self) -> int:
        """Return the id of an order, which may be deleted; never the newest, as with products."""
        return self.random.randrange(self.first_order, self.next_order - 1)

    # --- inside ---

    def execute(self, statement: str, *arguments: Any) -> None:
        """Send a statement."""
        self.cursor.execute(statement, arguments or None)

    def _update(self, table: str, changes: dict[str, Any], where: str, *arguments: Any) -> None:
        assignments = ", ".join(f"{name} = %s" for name in changes)
        self.execute(f"UPDATE {table} SET {assignments} WHERE {where}", *changes.values(), *arguments)

    def _one(self, query: str) -> Any:
        self.cursor.execute(query)
        row = self.cursor.fetchone()
        return row[0] if row else None

    def _bounds(self, table: str) -> tuple[int, int]:
        """Return the smallest id of a table and the next free one."""
        return int(self._one(f"SELECT min(id) FROM {table}")), int(self._one(f"SELECT max(id) FROM {table}")) + 1

    def _has(self, table: str, column: str) -> bool:
        return bool(self._one(f"SHOW COLUMNS FROM {table} LIKE '{column}'"))


def sku(product: int) -> str:
    """Return the SKU of a product."""
    return f"SKU-{product - 1:08d}"


class BackgroundWorkload:
    """A workload in a separate thread, at a limited rate.

    Args:
        options: pymysql's connection options.
        database: database of the shop.
        seed: see :class:`Workload`.
        rate: maximum transactions per second.
    """

    def __init__(self, options: dict[str, Any], database: str = "shop", seed: int = 1, rate: float = 50) -> None:
        self._options = options
        self._database = database
        self._seed = seed
        self._pause = 1 / rate
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="shop workload", daemon=True)
        self.transactions = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the current transaction.

        Raises:
            Exception: the exception that ended it earlier.
        """
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self.check()

    def check(self) -> None:
        """Raise the exception that ended it before it was stopped."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        try:
            with pymysql.connect(**{**self._options, "charset": "utf8mb4"}) as connection:
                workload = Workload(connection, self._database, self._seed)
                while not self._stopped.is_set():
                    began = time.monotonic()
                    workload.step()
                    self.transactions = workload.transactions
                    self._stopped.wait(max(0.0, self._pause - (time.monotonic() - began)))
        except Exception as failure:  # noqa: BLE001 - raised in the thread that stops it
            self._failure = failure
