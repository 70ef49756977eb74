"""A new table whose lake table is another's already: with ``on_error: quarantine`` it is left out, and all others go on."""

from __future__ import annotations

import json

import pytest

from tests.harness.shop.source import Shop


class Colliding(Shop):
    """The shop in lake tables named after database and table, beside a database in which a table gets the name of ``lines``."""

    def begin(self, start):
        self.other = f"{self.database}_x"
        self.server.execute(f"CREATE DATABASE {self.other}")
        self.execute("CREATE TABLE x_lines (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        self.execute("INSERT INTO x_lines VALUES (1, 'mine', 1)")
        self.write(
            on_error="quarantine",
            start=start,
            tables=[f"{self.database}.*", f"{self.other}.*"],
            routes=[{"tables": "*.*", "into": f"{self.database}.{{database}}_{{table}}"}],
        )
        self.cdc("cdc run shop")
        for table in ("x_lines", "orders", "`lines`"):
            self.execute(f"UPDATE {table} SET v = 'begun'")
        self.runs(2)

    def make(self):
        """Create the other table, with rows of the same key."""
        self.server.execute(f"CREATE TABLE {self.other}.`lines` (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        self.server.execute(f"INSERT INTO {self.other}.`lines` VALUES (1, 'other', 9), (2, 'other', 9)")

    def of_the_lake(self, name):
        return self.lake.rows(f"{self.database}.{name}", "id", "v", "n")

    def goes_on(self, number):
        """Change the first tables and run: they are as at the source, and both cursors at its end."""
        self.change(number)
        self.execute(f"INSERT INTO x_lines VALUES ({number + 10}, 'mine', {number})")
        output = self.cdc("cdc run shop")
        for table in ("x_lines", "orders", "lines"):
            assert self.of_the_lake(f"{self.database}_{table}") == self.source_rows(table)
        (status,) = json.loads(self.cdc("cdc status shop --json"))
        assert status["lake"]["position"] == status["drain"]["position"]
        return output

    def quarantined(self):
        return [str(one["table"]) for one in self.cursor("drain")["quarantine"] if one["fault"] is not None]


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = Colliding.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    yield shop
    any_server.execute(f"DROP DATABASE IF EXISTS {shop.other}")


@pytest.mark.parametrize("start", ["snapshot", "latest"])
def test_a_new_table_with_the_lake_name_of_another_is_quarantined_alone(shop, start):
    """The file is corrected, and the table resumed."""
    shop.begin(start)
    shop.make()
    for number in (1, 2):
        shop.goes_on(number)
    assert "would be one lake table" in shop.cdc("cdc status shop")
    assert "would be one lake table" in shop.cdc(f"cdc quarantine resume shop {shop.other}.lines", 2)
    assert "would be one lake table" in shop.cdc("cdc doctor shop")
    shop.write(routes=[{**shop.settings["routes"][0], "tables": f"{shop.database}.*"}])
    shop.cdc(f"cdc quarantine resume shop {shop.other}.lines")
    for number in (3, 4):
        shop.goes_on(number)
    assert shop.lake.rows(f"{shop.other}.lines", "id", "v", "n") == [(1, "other", 9), (2, "other", 9)]
    assert "would be one lake table" not in shop.cdc("cdc status shop")


def test_a_table_that_came_and_went_between_two_plans_does_not_write_into_the_others(shop):
    """Only the merge sees it."""
    shop.begin("snapshot")
    shop.make()
    shop.server.execute(f"DROP TABLE {shop.other}.`lines`")
    assert "would be one lake table" in shop.goes_on(1)
    shop.goes_on(2)


def test_two_new_tables_of_one_lake_name_wait_until_the_file_chooses(shop):
    """None of them is first; the others go on."""
    shop.begin("snapshot")
    for table in (f"{shop.other}.z", f"{shop.database}.x_z"):
        shop.server.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        shop.server.execute(f"INSERT INTO {table} VALUES (1, 'one', 1)")
    shop.goes_on(1)
    shop.cdc(f"cdc quarantine resume shop {shop.database}.x_z", 2)
    shop.write(tables=[f"{shop.database}.*"])
    shop.cdc(f"cdc quarantine resume shop {shop.database}.x_z")
    for number in (2, 3):
        shop.goes_on(number)
    assert shop.of_the_lake(f"{shop.database}_x_z") == [(1, "one", 1)]
