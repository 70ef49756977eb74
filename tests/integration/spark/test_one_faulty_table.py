"""With ``on_error: quarantine`` an error of one table in a merge holds back no other table: all by ``cdc run`` and the hints."""

from __future__ import annotations

import json

import pytest

from cdc_lib.merge.table_work import TableDecisions
from tests.harness.shop.source import Shop


class OneFaulty(Shop):
    """The shop of the documentation; its table ``orders`` gets the faults, ``lines`` must never be late."""

    def run(self):
        """Do one run: it exits 0, and the other table is as at the source."""
        output = self.cdc("cdc run shop")
        assert self.rows("lines") == self.source_rows("lines")
        (status,) = json.loads(self.cdc("cdc status shop --json"))
        assert status["lake"]["position"] == status["drain"]["position"]
        return output

    def status(self):
        (status,) = json.loads(self.cdc("cdc status shop --json"))
        return status

    def types(self):
        return {one.name: one.type for one in self.lake.state(f"{self.database}.orders").columns}


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = OneFaulty.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.write(on_error="quarantine")
    shop.runs(2)
    return shop


def test_a_column_that_only_the_merge_refuses_quarantines_the_table_alone(shop):
    """The run says so and what leads out; a cause that persists quarantines it again, one that is corrected does not."""
    shop.execute("ALTER TABLE orders ADD `_file` INT")
    shop.execute("UPDATE orders SET `_file` = 1 WHERE id = 7")
    shop.change(1)
    output = shop.run()
    assert f"{shop.database}.orders: quarantined: column _file has a name that is reserved" in output
    assert f"cdc snapshot shop {shop.database}.orders" in output
    assert f"cdc snapshot shop {shop.database}.orders" in shop.cdc("cdc status shop")
    assert len(shop.status()["lagging"]) == 1
    shop.change(2)
    assert "left out of the merge" not in shop.run()
    shop.cdc("cdc quarantine resume shop shop.orders")
    for number in (3, 4, 5):
        shop.change(number)
        shop.run()
    assert len(shop.status()["lagging"]) == 1
    shop.execute("ALTER TABLE orders DROP COLUMN `_file`")
    shop.run()
    shop.cdc("cdc quarantine resume shop shop.orders")
    for number in (6, 7):
        shop.change(number)
        shop.run()
    shop.assert_equal()


@pytest.mark.parametrize("error", [TypeError("unhashable type"), ValueError("not a literal")])
def test_an_error_that_nobody_foresaw_fails_its_table_alone(shop, monkeypatch, error):
    """Its text is in the record, and the table is right after it is resumed."""
    decide = TableDecisions._work

    def failing(job, table, *rest):
        if table.pair[1] == "orders":
            raise error
        return decide(job, table, *rest)

    shop.change(1)
    with monkeypatch.context() as patched:
        patched.setattr(TableDecisions, "_work", failing)
        assert str(error) in shop.run()
    shop.change(2)
    shop.cdc("cdc quarantine resume shop shop.orders")
    shop.run()
    shop.run()
    shop.assert_equal()


def test_a_table_that_is_asked_about_waits_alone_and_catches_up_with_the_answer(shop):
    """No new snapshot is needed; meanwhile the status names the statement, since when, and the command."""
    shop.write(schema_changes={"truncate": "ask"})
    shop.change(1)
    shop.run()
    shop.execute("TRUNCATE orders")
    shop.execute("INSERT INTO orders VALUES (1, 'after', 1)")
    shop.change(2)
    output = shop.run()
    assert "waits since" in output
    assert f"cdc schema answer shop {shop.database}.orders follow|keep" in output
    before = shop.rows("orders")
    for number in (3, 4):
        shop.change(number)
        assert "waits since" in shop.run()
        assert shop.rows("orders") == before
        [stopped] = shop.status()["stopped"]
        assert stopped["question"]["kind"] == "truncate"
    assert "waits for an answer" in shop.cdc("cdc status shop")
    shop.cdc("cdc schema answer shop shop.orders follow")
    shop.run()
    shop.assert_equal()
    shop.change(5)
    shop.run()
    shop.assert_equal()


def test_a_table_that_the_file_stops_waits_alone_until_the_file_changes(shop):
    """Also when the run has nothing else; a new snapshot is the other way out."""
    shop.write(schema_changes={"add_column": "stop"})
    shop.execute("ALTER TABLE orders ADD m INT DEFAULT 7")
    shop.execute("UPDATE orders SET v = 'm' WHERE id = 5")
    assert "waits since" in shop.run()
    shop.change(1)
    shop.run()
    assert "m" not in shop.types()
    shop.write(schema_changes={"add_column": "follow"})
    shop.run()
    assert "m" in shop.types()
    shop.assert_equal()
    shop.write(schema_changes={"truncate": "stop"})
    shop.execute("TRUNCATE orders")
    shop.change(2)
    assert "waits since" in shop.run()
    shop.cdc("cdc snapshot shop shop.orders")
    shop.run()
    shop.run()
    shop.assert_equal()
