"""Transactions that a server lost or holds back, up to the lake: closed binlog files that were cut off, and long statements."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from cdc_lib.model.position import Position
from tests.harness.binlog.long_statement import long_statement
from tests.harness.binlog.torn_files import cut
from tests.harness.servers.replication import replicated, server_of
from tests.harness.shop.source import ROWS, Shop, on_the_page, over_the_running_spark

pytestmark = pytest.mark.slow
FALLBACK = 60
"""Seconds that a failover without GTIDs goes back by default."""


@pytest.fixture
def shop_on(tmp_path, lake, monkeypatch):
    """Make a merged shop on a new server."""
    with ExitStack() as stack:

        def _shop_on(server):
            monkeypatch.setenv("WAYS_PASSWORD", server.cdc_password)
            server.execute(f"CREATE DATABASE {lake.database}")
            over_the_running_spark(monkeypatch, lake)
            shop = Shop(server, lake.database, tmp_path, lake)
            shop.runs(2)
            return shop

        _shop_on.enter = stack.enter_context
        yield _shop_on


def end_of(shop):
    """Return the end of the server's binlog."""
    file, offset = shop.execute("SHOW BINARY LOGS")[-1][:2]
    return Position(file, int(offset))


@pytest.mark.parametrize("way", ["restored", "continued after it"])
@pytest.mark.parametrize("kind", ["mysql with GTIDs", "mysql without GTIDs", "mariadb"])
def test_a_closed_file_cut_off_between_transactions_stops_every_run_until_the_page_is_followed(kind, way, shop_on):
    """The file is restored, or what follows it is read and all tables are snapshotted again: *Continue after a gap*."""
    shop = shop_on(shop_on.enter(server_of(kind, 1, "ways_password")))
    shop.change(2)
    shop.runs(1)
    shop.change(3)
    end = end_of(shop)
    shop.change(4)
    shop.execute("FLUSH BINARY LOGS")
    shop.change(5)
    restore = cut(shop.server, end)
    before = shop.cursor("drain")["position"]
    for _ in range(2):
        printed = " ".join(shop.cdc("cdc run shop", code=1).split())
        assert "ends without a ROTATE or STOP event, and" in printed
        assert f"{end.file}" in printed
    assert shop.cursor("drain")["position"] == before
    assert 104 not in {row[0] for row in shop.rows("orders")}
    if way == "restored":
        restore()
    else:
        place = f"{end.file[:-6]}{end.file_number + 1:06d}:4"
        assert f"cdc cursor rewind shop --position {place}" in printed
        for command in (f"cdc cursor rewind shop --position {place} --why cut", "cdc snapshot shop '*.*' --why cut"):
            assert on_the_page(command)
            shop.cdc(command)
    shop.runs(3)
    shop.change(9)
    shop.runs(1)
    shop.assert_equal()
    assert {104, 105, 109} <= {row[0] for row in shop.rows("orders")}


def test_a_statement_longer_than_the_fallback_is_in_the_lake_after_a_failover_by_time(shop_on):
    """*Failover* without GTIDs: the statement began before the position that the time gives, and committed after it."""
    with replicated("mysql without GTIDs", settings={"max-binlog-size": 4096}) as pair:
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        shop = shop_on(pair.primary)
        shop.write(standbys=[{"host": pair.standby.host, "port": pair.standby.port}], failover={"attempts": 1})
        statement = (
            f"INSERT INTO {shop.database}.orders WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE "
            "i < 500) SELECT 1000 + i, 'of the statement', IF(i = 500, GET_LOCK('until', 600), 0) FROM n"
        )
        with long_statement(pair.primary, statement):
            time.sleep(FALLBACK + 5)
            shop.execute("UPDATE `lines` SET v = 'read' WHERE id = 2")
            shop.runs(1)
            for number in range(30, 38):
                shop.execute(f"UPDATE `lines` SET v = 'not read' WHERE id = {number}")
        shop.fail_over(pair)
        assert len(shop.rows("orders")) == ROWS + 500
