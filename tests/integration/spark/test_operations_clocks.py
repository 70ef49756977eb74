"""*Clocks* of docs/operations.md on servers with wrong clocks: the procedures of the page end with equal tables."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.binlog.framing.boundary_scan import LONGEST_STATEMENT
from cdc_lib.plan.locate import SET_BACK
from tests.harness.servers.replication import replicated, server_of
from tests.harness.servers.skew import can_be_wrong, wrong_clock
from tests.harness.shop.source import Shop, on_the_page

HOURS = 3600
needs_compiler = pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")


@pytest.fixture
def shop_on(tmp_path, lake, monkeypatch):
    """Make a merged shop on a new server."""
    with ExitStack() as stack:

        def _shop_on(kind, skew=0):
            server = stack.enter_context(server_of(kind, 1, "ways_password", skew=skew))
            return shop_of(server, tmp_path, lake, monkeypatch)

        yield _shop_on


def shop_of(server, folder, lake, monkeypatch):
    server.execute(f"CREATE DATABASE {lake.database}")
    shop = Shop.on_running_spark(server, lake.database, folder, lake, monkeypatch)
    shop.runs(2)
    time.sleep(1.1)  # MariaDB's binlog has whole seconds
    return shop


def clock_of(shop):
    """Return the server's time, as a user writes it for ``--time``."""
    ((now,),) = shop.execute("SELECT UTC_TIMESTAMP()")
    return now.replace(tzinfo=UTC)


def written(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def lose_rows(shop, *numbers):
    """Delete the rows of some changes from the lake."""
    shop.sql(f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, numbers))}) OR id > 100")


def do(shop, *commands):
    """Run commands, each of which must be on the page, and compare the tables."""
    for command in commands:
        assert on_the_page(command), f"{command} is not on the page"
        shop.cdc(command)
    shop.runs(3)
    shop.change(9)
    shop.runs(1)
    shop.assert_equal()


@contextmanager
def at_clock(shop, when):
    """Give the changes of a session the times of another clock, which MariaDB writes as their start."""
    with shop.server.connect(database=shop.database) as session, session.cursor() as sql:
        sql.execute(f"SET TIMESTAMP = {when.timestamp()}")
        yield sql
        session.commit()


@needs_compiler
@pytest.mark.parametrize("skew", [-5 * HOURS, 5 * HOURS])
def test_a_failover_without_gtids_needs_no_action_with_any_clock_of_the_new_server(skew, tmp_path, lake, monkeypatch):
    """All changes of the new server are read; ``cdc cursor show`` shows the time, and the server of the clock."""
    with replicated("mysql without GTIDs", skews=(0, skew)) as pair:
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        shop = shop_of(pair.primary, tmp_path, lake, monkeypatch)
        standby = {"host": pair.standby.host, "port": pair.standby.port}
        shop.write(standbys=[standby], failover={"attempts": 1, "fallback_interval": "1s"})
        time.sleep(2.1)  # more than the fallback
        shop.change(2)
        shop.runs(1)
        shop.fail_over(pair)
        assert on_the_page("cdc cursor show shop")


@needs_compiler
@pytest.mark.parametrize("kind", ["mysql with GTIDs", "mariadb"])
def test_times_are_by_the_servers_wrong_clock(kind, shop_on):
    """``cdc doctor`` warns of it; a time of this machine is hours before the binlog, a time of the server finds the position."""
    shop = shop_on(kind, 5 * HOURS)
    findings = json.loads(shop.cdc("cdc doctor --json"))
    (clock,) = [finding for finding in findings if finding["what"].startswith("the server's clock")]
    assert clock["level"] == "warning"
    assert 17_990 < int(re.search(r"is (\d+) seconds ahead of", clock["what"])[1]) < 18_010
    assert on_the_page("cdc doctor")
    since, mine = clock_of(shop), datetime.now(UTC)
    shop.change(2)
    shop.runs(1)
    lose_rows(shop, 2)
    refused = shop.cdc(f"cdc cursor locate shop --time {written(mine)}", code=1)
    assert "the oldest binlog file was made at" in " ".join(refused.split())
    do(
        shop,
        f"cdc cursor locate shop --time {written(since)}",
        f"cdc cursor rewind shop --time {written(since)} --why skew",
    )


@needs_compiler
@pytest.mark.parametrize("kind", ["mysql with GTIDs", "mariadb"])
def test_the_search_covers_files_after_a_clock_was_set_back(kind, shop_on):
    """The server restarts with an earlier clock: its new events have times before the requested one."""
    shop = shop_on(kind)
    since = clock_of(shop)
    shop.change(2)
    shop.server.environment = wrong_clock(-5 * HOURS)
    shop.server.restart()
    shop.change(3)
    assert clock_of(shop) < since - SET_BACK - LONGEST_STATEMENT
    shop.runs(1)
    lose_rows(shop, 2, 3)
    do(shop, f"cdc cursor rewind shop --time {written(since)} --why skew")


@pytest.mark.parametrize("way", ["an earlier time", "a position"])
def test_a_larger_step_within_one_file_needs_an_earlier_time_or_a_position(way, shop_on):
    """A time while the clock was ahead finds a position after these changes; both procedures of the page find one before them."""
    shop = shop_on("mariadb")
    before, (_, began) = clock_of(shop), shop.execute("SHOW BINARY LOGS")[-1][:2]
    file = shop.execute("SHOW BINARY LOGS")[-1][0]
    ahead = before + timedelta(hours=5)
    with at_clock(shop, ahead) as sql:
        sql.execute("UPDATE orders SET v = 'ahead' WHERE id = 2")
        sql.execute("INSERT INTO orders VALUES (102, 'ahead', 0)")
    shop.execute("FLUSH BINARY LOGS")
    shop.change(3)
    shop.runs(1)
    position = json.loads(shop.cdc(f"cdc cursor locate shop --time {written(ahead)} --json"))["checkpoint"]["position"]
    assert (position["file"], position["offset"]) > (file, began)
    lose_rows(shop, 2, 3)
    place = f"--time {written(before)}" if way == "an earlier time" else f"--position {file}:{began}"
    do(shop, f"cdc cursor rewind shop {place} --why skew")
