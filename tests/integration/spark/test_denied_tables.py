"""A storage or a catalog that refuses the job for one table: with ``on_error: quarantine`` the others go on.

The catalog is SQLite, and a trigger in it refuses as a service does that denies access.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager

import pytest

from cdc_lib.lake.catalog import open_table
from cdc_lib.merge import planner
from spark_jobs.iceberg import table_definition as comments
from tests.harness.shop.source import Shop

DENY = "CREATE TRIGGER denies BEFORE {what} WHEN {when} BEGIN SELECT json_extract('{{}}', 'AccessDenied'); END"


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.write(on_error="quarantine")
    shop.runs(2)
    return shop


@contextmanager
def denied(shop, what, when):
    """Let the catalog refuse statements."""
    file = str(shop.lake.config.lake.uri).removeprefix("jdbc:sqlite:").partition("?")[0]
    with closing(sqlite3.connect(file, timeout=30)) as catalog:
        catalog.execute(DENY.format(what=what, when=when))
        try:
            yield
        finally:
            catalog.execute("DROP TRIGGER denies")


def lake_reaches_the_drain(shop):
    (status,) = json.loads(shop.cdc("cdc status shop --json"))
    return status["lake"]["position"] == status["drain"]["position"]


def brought(shop):
    """Do what the status says, and compare all tables."""
    assert "cdc quarantine resume shop" in shop.cdc("cdc status shop")
    shop.cdc("cdc quarantine resume shop shop.orders")
    shop.change(9)
    shop.runs(3)
    shop.assert_equal()


def test_a_table_that_the_catalog_refuses_in_two_merges_is_quarantined_alone(shop):
    """The first merge waits: the job may have lost its rights. The second one brings the other table."""
    when = f"NEW.table_namespace = '{shop.database}' AND NEW.table_name = 'orders'"
    with denied(shop, "UPDATE ON iceberg_tables", when):
        shop.change(1)
        assert "no permission" in shop.cdc("cdc run shop", 2)
        assert not lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
        shop.change(2)
        assert "orders: quarantined: could not" in shop.cdc("cdc run shop")
        assert lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
    brought(shop)


def test_a_refused_table_that_changed_alone_keeps_no_later_change_of_another_waiting(shop):
    """Its merge fails, as it may be the job that is refused; the next one takes what came since, and shows whose fault it is."""
    when = f"NEW.table_namespace = '{shop.database}' AND NEW.table_name = 'orders'"
    with denied(shop, "UPDATE ON iceberg_tables", when):
        shop.execute("UPDATE orders SET v = 'alone' WHERE id = 1")
        for _ in range(2):
            assert "no permission" in shop.cdc("cdc run shop", 2)
        moves = len(shop.cursor("lake")["moves"])
        shop.execute("UPDATE `lines` SET v = 'beside' WHERE id = 1")
        assert "orders: quarantined: could not" in shop.cdc("cdc run shop")
        assert lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
        assert [one["kind"] for one in shop.cursor("lake")["moves"][moves:]].count("rollback") <= 2
    brought(shop)


def test_a_full_merge_of_refused_changes_alone_keeps_no_later_change_of_another_waiting(shop, monkeypatch):
    """The next try takes more windows than a merge has else, and so reaches another table."""
    monkeypatch.setattr(planner, "_MERGE_WINDOWS", 2)
    for number in range(3):
        shop.execute(f"UPDATE orders SET v = 'alone' WHERE id = {number}")
        shop.drain()
    shop.execute("UPDATE `lines` SET v = 'beside' WHERE id = 1")
    with denied(
        shop, "UPDATE ON iceberg_tables", f"NEW.table_namespace = '{shop.database}' AND NEW.table_name = 'orders'"
    ):
        assert "no permission" in shop.cdc("cdc run shop", 2)
        assert "orders: quarantined: could not" in shop.cdc("cdc run shop")
        shop.runs(1)  # without the table it takes as many windows as any merge
        assert lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
    brought(shop)


def begin_an_epoch(shop):
    """Let the drain continue where it is, as after a failover: no merge takes windows of both epochs."""
    shop.drain()
    place = shop.cursor("drain")["position"]
    shop.cdc(f"cdc cursor rewind shop --position {place['file']}:{place['offset']} --why test")


def test_a_refused_table_that_changed_alone_before_an_epoch_ended_keeps_no_later_epoch_waiting(shop):
    """No later window can join its merge; the second try compares it with tables that did not change, whose rows stay as they are."""
    when = f"NEW.table_namespace = '{shop.database}' AND NEW.table_name = 'orders'"
    with denied(shop, "UPDATE ON iceberg_tables", when):
        shop.execute("UPDATE orders SET v = 'alone' WHERE id = 1")
        begin_an_epoch(shop)
        shop.execute("UPDATE `lines` SET v = 'beside' WHERE id = 1")
        assert "no permission" in shop.cdc("cdc run shop", 2)
        assert "orders: quarantined: could not" in shop.cdc("cdc run shop")
        shop.runs(1)
        assert lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
    brought(shop)


def test_a_catalog_that_refuses_every_table_before_an_epoch_ended_quarantines_none(shop):
    with denied(shop, "UPDATE ON iceberg_tables", "TRUE"):
        shop.execute("UPDATE orders SET v = 'alone' WHERE id = 1")
        begin_an_epoch(shop)
        shop.execute("UPDATE `lines` SET v = 'beside' WHERE id = 1")
        for _ in range(3):
            assert "no permission" in shop.cdc("cdc run shop", 2)
    shop.runs(2)
    shop.assert_equal()


def comments_of(shop):
    with open_table(shop.lake.config, f"{shop.database}.orders") as found:
        docs = {field.name: field.doc for field in found.schema().fields if field.doc}
        return found.properties.get("comment", ""), docs


def warnings(shop):
    findings = json.loads(shop.cdc("cdc doctor shop --json"))
    return [one["what"] for one in findings if one["level"] == "warning"]


def test_comments_that_the_catalog_refuses_hold_up_no_rows(shop):
    """Each merge of rows tries again, also when the windows that brought them are removed, and doctor says so until then."""
    when = f"NEW.table_namespace = '{shop.database}' AND NEW.table_name = 'orders'"
    with denied(shop, "UPDATE ON iceberg_tables", when):
        shop.execute("ALTER TABLE orders MODIFY v VARCHAR(20) COMMENT 'a value', COMMENT = 'all orders'")
        for number in (1, 2):
            shop.execute(f"UPDATE `lines` SET v = 'new' WHERE id = {number}")
            assert "comments of the source could not be carried over: could not change" in shop.cdc("cdc run shop")
            assert lake_reaches_the_drain(shop)
            assert shop.rows("lines") == shop.source_rows("lines")
            assert f"{shop.database}.orders: its comments are not in the lake" in warnings(shop)
    assert comments_of(shop) == ("", {})
    shop.execute("UPDATE orders SET v = 'new' WHERE id = 3")
    shop.cdc("cdc run shop")
    assert comments_of(shop) == ("all orders", {"v": "a value"})
    assert not [what for what in warnings(shop) if "its comments" in what]
    shop.assert_equal()


def test_an_error_of_comments_that_nobody_foresaw_holds_up_no_rows(shop, monkeypatch):
    def failing(*_):
        raise TypeError("an odd comment")

    shop.execute("ALTER TABLE orders COMMENT = 'all orders'")
    shop.change(1)
    with monkeypatch.context() as patched:
        patched.setattr(comments, "change_comments", failing)
        assert "TypeError('an odd comment')" in shop.cdc("cdc run shop")
    assert lake_reaches_the_drain(shop)
    shop.change(2)
    shop.cdc("cdc run shop")
    assert comments_of(shop)[0] == "all orders"
    shop.assert_equal()


def test_a_namespace_that_cannot_be_made_quarantines_its_tables_alone(shop):
    """The tables of other namespaces are merged by the same job."""
    routes = [{"tables": f"{shop.database}.orders", "into": f"{shop.database}_elsewhere.orders"}]
    with denied(shop, "INSERT ON iceberg_namespace_properties", f"NEW.namespace = '{shop.database}_elsewhere'"):
        shop.write(routes=routes)
        shop.change(1)
        shop.cdc("cdc run shop", 2)
        assert shop.rows("lines") == shop.source_rows("lines")
        shop.change(2)
        assert "could not create the namespace" in shop.cdc("cdc run shop")
        assert lake_reaches_the_drain(shop)
        assert shop.rows("lines") == shop.source_rows("lines")
