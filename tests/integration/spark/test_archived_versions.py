"""Versions of rows from stored batches equal what was written to a real server, in order, as long as retention keeps its windows."""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.lake_table import ORDER
from cdc_lib.read import Lake
from cdc_lib.store.windows import stored_windows
from tests.harness.shop.source import Shop

TABLES = ("parts", "kept")
"""A ``mirror`` and a ``soft_delete`` table."""

NAMES = ("a", "A", "ä", "b")
MONTH = 30 * 86_400


class Written:
    """Writes to two equal tables with a key of a text and a number, and remembers each change of each key.

    Args:
        shop: the source.
        seed: of the changes.
    """

    def __init__(self, shop, seed=1):
        self.shop, self.chosen = shop, random.Random(seed)
        self.rows, self.history, self.before_empty = {}, defaultdict(list), set()
        self.execute(
            "CREATE TABLE parts (name VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n INT, v INT, t VARCHAR(9), "
            "PRIMARY KEY (name, n))"
        )

    def execute(self, sql):
        """Run a statement on both tables."""
        for name in TABLES:
            self.shop.execute(sql.replace("parts", name))

    def note(self, op, key, values):
        """Remember a change, and what it made of its row."""
        before = self.history[key][-1][0] if self.history[key] else None
        is_compared = op == "u" and before in ("c", "u", "r")
        changed = [name for name in ("v", "t") if self.rows[key][name] != values[name]] if is_compared else None
        self.history[key].append((op, values, changed))
        self.rows.pop(key, None)
        if op in "cu":
            self.rows[key] = values

    def change(self, count):
        """Insert, update, delete or move rows."""
        for _ in range(count):
            self._change()

    def _change(self):
        key = (self.chosen.choice(NAMES), self.chosen.randrange(3))
        values = {"v": self.chosen.randrange(4), "t": self.chosen.choice(["x", "y", None])}
        where = "WHERE name = '{}' AND n = {}".format(*key)
        cells = ", ".join("NULL" if one is None else repr(one) for one in (*key, *values.values()))
        if key not in self.rows:
            self.execute(f"INSERT INTO parts VALUES ({cells})")
            self.note("c", key, values)
        elif (kind := self.chosen.choice(["delete", "move", "update", "update", "update"])) == "delete":
            self.execute(f"DELETE FROM parts {where}")
            self.note("d", key, self.rows[key])
        elif kind == "move":
            to = (key[0], 10 + sum(map(len, self.history.values())))
            self.execute(f"UPDATE parts SET n = {to[1]} {where}")
            old = self.rows[key]
            self.note("d", key, old)
            self.note("u", to, old)
        elif values != self.rows[key]:  # else the statement changes nothing, and has no event
            text = "NULL" if values["t"] is None else f"'{values['t']}'"
            self.execute(f"UPDATE parts SET v = {values['v']}, t = {text} {where}")
            self.note("u", key, values)

    def read(self):
        """Remember that a snapshot reads the rows as they are, and that nothing is known of what was before."""
        self.history.clear()
        self.history.update((key, [("r", values, None)]) for key, values in self.rows.items())

    def insert(self, key):
        """Insert a row that :meth:`change` leaves alone."""
        self.execute("INSERT INTO parts VALUES ('{}', {}, 1, 'x')".format(*key))
        self.note("c", key, {"v": 1, "t": "x"})

    def empty(self):
        """Empty the table."""
        self.execute("TRUNCATE TABLE parts")
        for key in set(self.rows):
            self.note("t", key, {"v": None, "t": None})
        self.before_empty = set(self.history)

    def prepare(self, key, v):
        """Insert a row, and prepare an XA transaction that updates it; returns what commits it."""
        self.insert(key)
        connection = self.shop.server.connect()
        with connection.cursor() as cursor:
            cursor.execute(f"USE `{self.shop.database}`")
            for statement in (
                "XA START 'parts'",
                *(f"UPDATE {name} SET v = {v} WHERE name = '{key[0]}' AND n = {key[1]}" for name in TABLES),
                "XA END 'parts'",
                "XA PREPARE 'parts'",
            ):
                cursor.execute(statement)

        def commit():
            with connection.cursor() as cursor:
                cursor.execute("XA COMMIT 'parts'")
            connection.close()
            self.note("u", key, self.rows[key] | {"v": v})

        return commit

    def without_binlog(self, *statements):
        """Run statements that no batch has."""
        connection = self.shop.server.connect()
        with connection.cursor() as cursor:
            for statement in (f"USE `{self.shop.database}`", "SET SESSION sql_log_bin = 0", *statements):
                cursor.execute(statement)
        connection.commit()
        connection.close()

    def shown(self, name, number):
        """Return what ``cdc get`` shows: operation, ``v`` and changed columns of each version, and why there are no earlier ones."""
        shown = json.loads(self.shop.cdc(f"cdc get shop {self.shop.database}.parts {name} {number} --versions --json"))
        return [(one["_op"], one["v"], one["_changed"]) for one in shown["versions"]], shown["why"]

    def of_lake(self, name, key):
        """Return the version of a key that the lake table alone shows; a soft_delete table also has deleted rows."""
        if key in self.rows:
            return [(None, self.rows[key], None)]
        return [(*self.history[key][-1][:2], None)] if name == "kept" and self.history[key] else []

    def expected(self, key):
        """Return the versions of a key, newest first; rows before the first batch may have been removed with the others."""
        unknown = [] if key in self.before_empty else [("t", {"v": None, "t": None}, None)]
        return [*self.history[key][::-1], *unknown]


def versions(found):
    """Operation, values and changed columns of versions."""
    return [(one["_op"], {"v": one["v"], "t": one["t"]}, one["_changed"]) for one in found.rows.to_pylist()]


def orders(found):
    """The order key of versions."""
    return [tuple(one[name] for name in ORDER) for one in found.rows.to_pylist()]


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    return Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)


def test_versions_are_what_was_written_in_order(shop):
    """Rows of the snapshot, inserts, updates, deletes, moved keys, a TRUNCATE and an XA transaction over several windows.

    Then without the oldest ones, after a new snapshot, and after one of a part: what the binlog lacked is a version too.
    """
    shop.write(modes=[{"tables": f"{shop.database}.kept", "mode": "soft_delete"}])
    parts, found = Written(shop), {}
    parts.change(20)
    parts.read()
    shop.runs(2)
    for number in range(5):
        parts.change(30)
        if number == 1:
            parts.empty()
            parts.insert(("still", 1))
        if number == 2:
            commit = parts.prepare(("xa", 1), 7)
        if number == 3:
            commit()
        shop.cdc("cdc run shop")
    config = load_source(shop.folder / "sources" / "shop.yaml")
    with Lake.open(config, store=shop.store) as lake:
        readers = {name: lake.table(f"{shop.database}.{name}") for name in TABLES}
        for name, reader in readers.items():
            for key in [*parts.history, ("none", 1)]:
                found[name, key] = reader.archived_versions(key)
                assert versions(found[name, key]) == parts.expected(key), (name, key)
                assert versions(reader.archived_versions(key, limit=2)) == parts.expected(key)[:2]
                assert orders(found[name, key]) == sorted(orders(found[name, key]), reverse=True)
        assert any(len(one) > 1 and one[0][0] == "r" for one in parts.history.values())
        first = found["parts", ("a", 1)]
        times = first.rows.column("_ts").to_pylist()
        assert first.complete_since <= times[-1] <= times[0]

        windows = stored_windows(shop.store, "shop")
        for window in windows[: len(windows) * 2 // 3]:
            os.utime(shop.folder / "store" / window.key, (time.time() - MONTH,) * 2)
        shop.cdc("cdc batches gc shop --yes")
        for reader in readers.values():
            reader.refresh()
        for (name, key), before in found.items():
            left = readers[name].archived_versions(key)
            known = [one for one in orders(before) if one[:3] >= left.complete_from]
            assert orders(left)[: len(known)] == known
            assert [one[:2] for one in versions(left)][: len(known)] == [one[:2] for one in parts.expected(key)][
                : len(known)
            ]
            of_lake = [] if known else parts.of_lake(name, key)
            assert versions(left)[len(known) :] == of_lake, (name, key)
        reader = readers["parts"]
        assert versions(reader.archived_versions(("still", 1))) == [(None, {"v": 1, "t": "x"}, None)]
        assert first.complete_from < left.complete_from
        assert left.why == "earlier batches are not stored"
        with pytest.raises(BatchesMissing, match="all versions of rows are known since"):
            reader.archived_versions(("a", 1), since=times[-1])

    shop.execute("UPDATE parts SET v = v + 1")
    shop.drain()  # the merge leaves this window out, because the new snapshot has its changes
    shop.cdc(f"cdc snapshot shop {shop.database}.parts")
    shop.runs(2)
    shop.execute("UPDATE parts SET v = v + 1 WHERE name = 'still'")
    shop.runs(1)
    why = "the table was quarantined, or a new snapshot replaced its changes"
    assert parts.shown("still", 1) == ([("u", 3, ["v"]), ("r", 2, None)], why)
    assert parts.shown("xa", 1) == ([("r", 8, None)], why)

    parts.without_binlog("DELETE FROM parts WHERE name = 'still'", "UPDATE parts SET v = 9 WHERE name = 'xa'")
    shop.cdc(f"cdc snapshot shop {shop.database}.parts --key-from '[\"still\"]' --key-to '[\"xa\"]'")
    shop.runs(2)
    assert parts.shown("still", 1) == ([("d", 3, None), ("u", 3, ["v"]), ("r", 2, None)], why)
    assert parts.shown("xa", 1) == ([("r", 9, ["v"]), ("r", 8, None)], why)
