"""Stops of docs/operations.md that another server or a stalled one causes: in turn on one shop, whose tables equal the source afterwards."""

from __future__ import annotations

import threading
import time

from cdc_lib.mysql import watermark
from cdc_lib.pipeline import Pipeline
from tests.harness.network.tcp_proxy import TcpProxy
from tests.harness.servers.replication import replicated
from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Others, Stop, follow_all, nothing

SNAPSHOT = "cdc snapshot shop shop.orders"
TWICE = ("cdc run shop", "cdc run shop")


class PairShop(Shop):
    """A shop whose server has one name, which leads to the primary or its standby, and the primary's own name besides."""

    def lead_to_the_standby(self) -> None:
        """Let the name lead to the standby from now on."""
        self.proxy.host, self.proxy.port = self.pair.standby.host, self.pair.standby.port


def other_server_after_the_plan(shop):
    time.sleep(2.1)  # more than the fallback: so a transaction is known to be earlier
    shop.change(1)
    shop.runs(1)
    shop.change(2)
    shop.pair.wait("seen.t")
    shop.others.act_before(Pipeline, "drain", shop.lead_to_the_standby)


def standby_that_purged_its_binlog(shop):
    standby = {"host": shop.pair.standby.host, "port": shop.pair.standby.port}
    shop.write(standbys=[*shop.settings["standbys"], standby])
    shop.change(3)
    shop.runs(1)
    time.sleep(2.1)
    shop.change(4)
    shop.pair.wait("seen.t")
    shop.pair.promote()
    shop.server = shop.pair.standby
    shop.execute("FLUSH BINARY LOGS")
    shop.server.purge_binlogs()
    shop.after = "{}:4".format(shop.execute("SHOW BINARY LOGS")[0][0])


def commit_without_a_replica(shop):
    """The server waits for a replica after it has written the transaction to its binlog."""
    shop.execute("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    shop.execute("SET GLOBAL rpl_semi_sync_source_timeout = 600000")
    shop.execute("SET GLOBAL rpl_semi_sync_source_enabled = ON")
    shop.others.patch.setattr(watermark, "_WAIT_SECONDS", 1)
    shop.commit = threading.Thread(target=shop.execute, args=("UPDATE orders SET v = 'late' WHERE id = 6",))
    shop.commit.start()
    while not shop.execute("SELECT @@GLOBAL.gtid_owned")[0][0]:
        time.sleep(0.1)


def replica_not_waited_for(shop):
    shop.execute("SET GLOBAL rpl_semi_sync_source_enabled = OFF")
    shop.commit.join()


STOPS = {
    "other_server_after_the_plan": Stop(
        "the work was planned for …, but … answers", other_server_after_the_plan, "cdc step drain shop", nothing,
        then=TWICE,
    ),
    "undone_failover": Stop(
        "the cursor's previous position is on another server, …", nothing, "cdc cursor rewind shop --undo", nothing, 2,
        ("cdc cursor failover shop --to {primary}", *TWICE),
    ),
    "purged_standby": Stop(
        "another server answers, and its binlog does not go back to the cursor: …", standby_that_purged_its_binlog,
        "cdc run shop", nothing, then=("cdc cursor rewind shop --position {after}", "cdc snapshot shop '*.*'", *TWICE),
        hint="cdc cursor rewind shop --position {after}, then cdc snapshot shop '*.*'",
    ),
}  # fmt: skip
STALLED = Stop(
    "transactions that are in the binlog are not committed after … seconds", commit_without_a_replica,
    SNAPSHOT, replica_not_waited_for, then=(SNAPSHOT, *TWICE), hint="rpl_semi_sync_source_enabled = OFF",
)  # fmt: skip


def test_what_the_page_says_ends_each_stop_of_another_server_and_the_tables_are_equal_afterwards(
    tmp_path, lake, monkeypatch, subtests
):
    """Without GTIDs, by the times of commits."""
    with (
        replicated("mysql without GTIDs") as pair,
        TcpProxy(pair.primary.host, pair.primary.port) as proxy,
    ):
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        pair.primary.execute(f"CREATE DATABASE {lake.database}")
        shop = PairShop.on_running_spark(pair.primary, lake.database, tmp_path, lake, monkeypatch)
        shop.pair, shop.proxy, shop.others = pair, proxy, Others(monkeypatch)
        shop.primary = f"{pair.primary.host}:{pair.primary.port}"
        shop.write(
            server={**shop.settings["server"], "port": proxy.own_port},
            standbys=[{"host": pair.primary.host, "port": pair.primary.port}],
            failover={"attempts": 1, "fallback_interval": "1s"},
        )
        shop.runs(2)
        follow_all(shop, STOPS, subtests, last_change=9)


def test_a_commit_that_waits_for_a_replica_is_ended_by_the_statement_in_the_hint(
    mysql_server, mysql_database, tmp_path, lake, monkeypatch
):
    """A snapshot waits for transactions that the binlog has: its request ends with the message, and the next one succeeds."""
    shop = Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)
    shop.others = Others(monkeypatch)
    shop.runs(2)
    try:
        STALLED.follow(shop)
        shop.assert_equal()
    finally:
        replica_not_waited_for(shop)
        shop.execute("UNINSTALL PLUGIN rpl_semi_sync_source")
