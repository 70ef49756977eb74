"""The whole life of a source whose user has the documented grants, with SELECT on the captured database alone."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from tests.harness.binlog import xa
from tests.harness.docs.documented_grants import PASSWORD, USER, documented, make_user
from tests.harness.servers.replication import replicated
from tests.harness.shop.source import Shop, over_the_running_spark


@pytest.mark.parametrize("kind", ["mysql with GTIDs", "mariadb"])
def test_a_whole_life_needs_no_other_grant(kind, tmp_path, lake, monkeypatch):
    """Doctor, snapshots, drains, DDL, cascades, XA transactions, comparisons, repairs, reselects, searches, and a failover."""
    with replicated(kind) as pair:
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        pair.primary.execute("CREATE DATABASE shop")
        make_user(pair.primary, documented(pair.primary.flavor), "shop")
        monkeypatch.setenv("WAYS_PASSWORD", PASSWORD)
        over_the_running_spark(monkeypatch, lake)
        shop = Shop(pair.primary, "shop", tmp_path, lake)
        pair.wait("seen.t")
        server = {**shop.settings["server"], "user": USER}
        shop.write(server=server, standbys=[{"host": pair.standby.host, "port": pair.standby.port}])
        shop.cdc("cdc doctor shop")
        shop.runs(2)
        time.sleep(1.1)
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        follow_changes(shop)
        compare_and_repair(shop, pair)
        shop.cdc(f"cdc cursor locate shop --time {since}")
        pair.wait("seen.t")
        shop.runs(1)
        shop.cdc(f"cdc cursor failover shop --to {pair.standby.host}:{pair.standby.port}")
        pair.release()
        shop.server = pair.standby
        shop.change(7)
        shop.runs(3)  # MariaDB's binlog has no rows that foreign keys delete: their table is read again
        shop.assert_equal()


def follow_changes(shop):
    """Changes, statements about tables, rows that foreign keys delete, and an XA transaction over several windows."""
    shop.change(1)
    shop.execute(
        "CREATE TABLE children (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES orders (id) ON DELETE CASCADE)"
    )
    shop.execute("INSERT INTO children VALUES (1, 5), (2, 6)")
    shop.execute("ALTER TABLE orders ADD more INT NULL")
    shop.runs(2)
    shop.execute("DELETE FROM orders WHERE id = 5")
    xa.prepare(shop.server, shop.database, "'life'", "INSERT INTO `lines` (id, v, n) VALUES (900, 'xa', 1)")
    shop.runs(1)
    xa.commit(shop.server, "'life'")
    shop.runs(2)
    shop.assert_equal()


def compare_and_repair(shop, pair):
    """A row that is not in the binlog is repaired; then every row is asked for at the source, and a part is read again."""
    pair.wait("seen.t")
    shop.runs(1)  # with nothing in flight, what differs is wrong
    for server in (pair.primary, pair.standby):
        with server.connect(database=shop.database) as session, session.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("UPDATE orders SET v = 'unseen' WHERE id = 9")
    shop.cdc("cdc verify shop --statement-delay 1ms", code=1)
    shop.cdc("cdc verify shop --repair")
    shop.assert_equal()
    shop.write(reselect={"mode": "always"})
    shop.change(2)
    shop.runs(1)
    shop.cdc("cdc snapshot shop shop.orders --key-from 1 --key-to 9")
    shop.cdc("cdc snapshot shop shop.lines")
    shop.runs(2)
    shop.assert_equal()
