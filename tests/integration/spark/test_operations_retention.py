"""*Binlog retention* of docs/operations.md on real servers: the warning, its advice, and files that were purged too early."""

from __future__ import annotations

import json
import re

import pytest

from cdc_lib.store.windows import stored_windows
from tests.harness.shop.source import PAGE, ROWS, Shop, on_the_page

KEPT = "binlog_expire_logs_seconds"


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    """A merged shop, on a server that keeps its binlog files for two hours."""
    ((before,),) = any_server.execute(f"SELECT @@GLOBAL.{KEPT}")
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.runs(2)
    if any_server.variable("slave_connections_needed_for_purge"):
        any_server.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
    any_server.execute("FLUSH BINARY LOGS")
    any_server.execute(f"SET GLOBAL {KEPT} = 7200")
    yield shop
    if any_server.flavor == "mysql":
        any_server.execute(f"RESET PERSIST IF EXISTS {KEPT}")
    any_server.execute(f"SET GLOBAL {KEPT} = {before}")


def warning_of(shop):
    """Return the warning of ``cdc status``, or an empty text; the text output must have the same advice."""
    (status,) = json.loads(shop.cdc("cdc status shop --json"))
    shown = [line for line in shop.cdc("cdc status shop").splitlines() if line.startswith("shop: ") and "purge" in line]
    warning = status["retention_warning"]
    assert [line.rpartition(": ")[2] for line in shown] == ([warning.rpartition(": ")[2]] if "purge" in warning else [])
    return warning


def run(shop, *commands):
    """Run commands, each of which must be on the page."""
    for command in commands:
        assert on_the_page(command), f"{command} is not on the page"
        shop.cdc(command)


def ends_equal(shop):
    shop.runs(3)
    shop.change(9)
    shop.runs(1)
    shop.assert_equal()


def purged_undrained(shop):
    """Purge files that were not drained; ``cdc status`` reports it, and the next run fails."""
    shop.change(2)
    shop.execute("FLUSH BINARY LOGS")
    shop.server.purge_binlogs()
    assert "the server no longer has " in warning_of(shop)
    assert "Plan: it goes on if all of that file had been read, else its error names the ways out." in warning_of(shop)
    assert "no longer has the cursor's binlog file" in " ".join(shop.cdc("cdc run shop", code=1).split())


def test_the_statement_in_the_warning_ends_it_and_draining_continues(shop):
    """The waiting windows are drained, and the server keeps its files longer."""
    shop.change(2)
    warning = warning_of(shop)
    assert "the server may purge" in warning
    assert "Let the source drain. And on the server: SET " in warning
    statement = re.search(rf"SET (PERSIST|GLOBAL) {KEPT} = \d+;", warning)
    assert f"SET {statement[1]}" in PAGE
    run(shop, "cdc run shop")
    assert "the server may purge" in warning_of(shop)  # drained, but the retention is still short
    shop.execute(statement[0])
    assert warning_of(shop) == ""
    ends_equal(shop)


def test_after_a_purge_a_rewind_and_new_snapshots_restore_all_tables(shop):
    """*Continue after a gap*, as the error says; then the retention is raised."""
    purged_undrained(shop)
    oldest = shop.execute("SHOW BINARY LOGS")[0][0]
    run(
        shop,
        f"cdc cursor rewind shop --position {oldest}:4 --why purged",
        "cdc snapshot shop '*.*' --why purged",
        "cdc run shop",
    )
    ends_equal(shop)


def test_after_a_purge_a_rewind_alone_misses_the_purged_changes_until_a_repair(shop):
    """The tables differ by these changes, ``cdc verify`` reports them, and its repair makes the tables equal."""
    purged_undrained(shop)
    oldest = shop.execute("SHOW BINARY LOGS")[0][0]
    run(shop, f"cdc cursor rewind shop --position {oldest}:4 --why purged", "cdc run shop")
    shop.change(3)
    shop.runs(1)
    ids = {row[0] for row in shop.rows("orders")}
    assert {103, 22} <= ids
    assert 102 not in ids
    shop.cdc("cdc verify shop", code=1)
    shop.cdc("cdc verify shop --repair")
    ends_equal(shop)
    assert len(shop.rows("orders")) == ROWS


def test_cleaning_up_store_and_lake_changes_no_row(shop):
    """The commands of the section, with an abandoned consumer, and more windows per run for a source that lags."""
    shop.cdc("cdc tail shop --consumer audit")
    for number in (2, 3, 4):
        shop.change(number)
        shop.drain()
    shop.write(drain={"parallelism": 4, "max_windows": 8}, store={**shop.settings["store"], "keep_batches_for": "0s"})
    stored = len(stored_windows(shop.store, "shop"))
    run(
        shop,
        "cdc consumers list shop",
        "cdc consumers drop shop audit",
        "cdc run shop",
        "cdc batches gc shop --yes",
        "cdc lake maintain shop",
        "cdc status shop",
    )
    assert len(stored_windows(shop.store, "shop")) < stored
    ends_equal(shop)


def test_the_lag_of_the_lake_is_unknown_until_its_first_cut_and_counts_what_is_drained(
    any_server, database, tmp_path, lake, monkeypatch
):
    """``cdc status`` at each step of the first run, and of a drain without a merge."""
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)

    def lag():
        (status,) = json.loads(shop.cdc("cdc status shop --json"))
        return status["lag_seconds"]

    def shown():
        return " ".join(shop.cdc("cdc status shop").split())

    assert lag() is None
    for _ in range(2):
        shop.drain()
        shop.change(len(stored_windows(shop.store, "shop")) + 2)
    shop.drain()
    assert stored_windows(shop.store, "shop")
    assert lag() is None
    assert "2 snapshots" in shown()
    shop.runs(1)
    shop.runs(1)
    assert lag() == 0
    shop.assert_equal()
    shop.change(8)
    shop.drain()
    assert lag() > 0
    waiting = shop.waiting()
    assert len(waiting) == 1
    shop.runs(1)
    assert lag() == 0
    assert shop.waiting() == []
    shop.assert_equal()
