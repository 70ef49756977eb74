"""Stops of docs/operations.md that statements of sessions cause, and what is done to a whole binlog: in turn on one shop."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import count

import pytest

from cdc_lib.pipeline import Pipeline
from tests.harness.binlog.edited_binlogs import GTIDS, edit_file
from tests.harness.shop.binlog import BinlogShop
from tests.harness.shop.stops import Others, Stop, nothing

DRAIN, PLAN = "cdc step drain shop", "cdc step plan shop"
DRAINED = (DRAIN, "cdc step ack drain shop", DRAIN, "cdc step ack drain shop")
ALL = "cdc snapshot shop '*.*'"


def end_of(shop):
    """Return the end of the server's binlog, as a user writes it."""
    return "{}:{}".format(*shop.execute("SHOW BINARY LOGS")[-1][:2])


@contextmanager
def session(shop, *statements):
    with shop.server.connect(database=shop.database) as one:
        for statement in statements:
            one.query(statement)
        yield one
        one.commit()


@contextmanager
def unnamed_columns(shop):
    """Let the server write rows without the names of their columns."""
    shop.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    shop.execute("FLUSH TABLES")
    yield
    shop.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    shop.execute("FLUSH TABLES")


def partition_of_a_shared_table_dropped(shop):
    shop.execute("ALTER TABLE parts_one DROP PARTITION unused")
    shop.after = end_of(shop)
    shop.execute("INSERT INTO parts_one VALUES (3, 'c', 3)")


def keys_for_the_shared_table(shop):
    """So that new snapshots of all tables are possible again."""
    shop.write(routes=[{"tables": f"{shop.database}.parts_*", "into": f"{shop.database}.all_parts", "keys": ["table"]}])


def name_in_other_characters(shop):
    """Signs of ASCII are letters in this character set: this empties ``grö``."""
    with session(shop, "SET NAMES swe7") as one:
        one.query(b"TRUNCATE `gr|`")
    shop.after = end_of(shop)


def child_rows_deleted(shop):
    shop.write(cascades="stop")
    shop.execute("DELETE FROM parents WHERE id = 1")


def other_rows_renamed(shop):
    keys_for_the_shared_table(shop)
    shop.execute("CREATE TABLE spare (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    shop.execute("INSERT INTO spare VALUES (1, 'spare', 1), (50, 'spare', 50)")
    shop.drain()
    shop.execute("RENAME TABLE orders TO former, spare TO orders")
    shop.execute("DROP TABLE former")


def altered_without_the_binlog(shop):
    with unnamed_columns(shop):
        with session(shop, "SET SESSION sql_log_bin = 0") as one:
            one.query("ALTER TABLE orders ADD hidden INT FIRST")
        shop.execute("UPDATE orders SET v = 'wide' WHERE id = 50")


def altered_twice(shop):
    """In an SQL mode in which the first statement is not followed."""
    with unnamed_columns(shop):
        shop.change(next(shop.numbers))
        with session(shop, "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'") as one:
            one.query("ALTER TABLE `lines` MODIFY v VARCHAR(30) COMMENT 'x\\y' FIRST")
        shop.execute("UPDATE `lines` SET v = 'first' WHERE id = 39")
        shop.execute("ALTER TABLE `lines` ADD w INT")


def without_gtid_events(shop):
    time.sleep(1.1)
    shop.since = "{:%Y-%m-%dT%H:%M:%SZ}".format(*shop.execute("SELECT UTC_TIMESTAMP()")[0])
    shop.changed_file(next(shop.numbers))
    edit_file(shop.server, shop.file, lambda events: [event for event in events if event[4] not in GTIDS])


def touch(shop):
    """Make a transaction whose bytes are as many each time, so that a new binlog has the same positions."""
    shop.execute("UPDATE `lines` SET n = n + 1 WHERE id = 38")


def reset(shop, further=1):
    time.sleep(1.1)  # a file's time has whole seconds
    touch(shop)
    shop.execute(shop.server.in_server_syntax("RESET BINARY LOGS AND GTIDS"))
    shop.after = "{}:4".format(shop.execute("SHOW BINARY LOGS")[0][0])
    for _ in range(further):
        touch(shop)


def reset_before_the_drain(further):
    """Return what resets the binlog between plan and drain; the new one ends where the planned window starts, or after its end."""

    def happens(shop):
        touch(shop)
        shop.others.act_before(Pipeline, "drain", lambda: reset(shop, further))

    return happens


def gtids_of_before(shop):
    shop.gtids = shop.execute(f"SELECT {GTID_SET[shop.server.flavor]}")[0][0]
    shop.change(next(shop.numbers))
    shop.execute("FLUSH BINARY LOGS")
    shop.runs(1)
    shop.server.purge_binlogs()


GTID_SET = {"mysql": "@@GLOBAL.gtid_executed", "mariadb": "@@GLOBAL.gtid_binlog_pos"}
SKIPPED = ("cdc cursor rewind shop --position {after}", *DRAINED)
CONTINUED = ("cdc cursor rewind shop --position {after}", ALL, *DRAINED)
STOPS = {
    "partition": Stop(
        "a statement whose effect on rows the binlog does not show: …", partition_of_a_shared_table_dropped, DRAIN,
        nothing, then=SKIPPED, hint="cdc cursor rewind shop --position ",
    ),
    "other_rows": Stop(
        "a RENAME put another table's rows into a captured table: …", other_rows_renamed, DRAIN, nothing, 0,
        ("cdc step ack drain shop", *DRAINED),
    ),
    "unknown_columns": Stop(
        "the columns of a table are not known from … and cannot be read from the server: …", altered_twice, DRAIN, nothing,
        0, ("cdc step ack drain shop", *DRAINED),
    ),
    "hidden_statement": Stop(
        "the binlog and the schema history disagree about a table: …", altered_without_the_binlog, DRAIN, nothing,
        then=("cdc snapshot shop shop.orders", *DRAINED),
        hint="cdc snapshot",
    ),
    "reset": Stop(
        "the server's binlog is not the one that the cursor is in: …", reset, "cdc run shop", nothing, then=CONTINUED,
        hint="cdc cursor rewind shop --position {after}",
    ),
    "reset_to_a_shorter_one": Stop(
        "the server has no binlog up to the window's end yet", reset_before_the_drain(1), DRAIN, nothing, then=CONTINUED
    ),
    "reset_before_the_drain": Stop(
        "… was made at …, and the window was planned for another of that name", reset_before_the_drain(4), DRAIN, nothing,
        then=CONTINUED, hint="Plan again",
    ),
    "purged_gtids": Stop(
        "transactions after the set are no longer in any binlog file: …", gtids_of_before,
        "cdc cursor rewind shop --gtid {gtids}", nothing, then=(ALL, *DRAINED),
    ),
}  # fmt: skip
OF_MYSQL = {
    "characters": Stop(
        "a statement names a table in characters that its session's character set does not have, or that are not read: …",
        name_in_other_characters, DRAIN, nothing,
        then=("cdc cursor rewind shop --position {after}", "cdc snapshot shop {database}.grö", *DRAINED),
        hint="cdc cursor rewind shop --position ",
    ),
    "without_gtids": Stop(
        "the file has transactions without GTID events, of a server before MySQL 5.6.5: times are not found in it",
        without_gtid_events, "cdc cursor locate shop --time {since}", BinlogShop.put_back,
        then=("cdc cursor locate shop --position {after}", *DRAINED), hint="cdc cursor rewind shop --position",
    ),
}  # fmt: skip
OF_MARIADB = {
    "cascade": Stop(
        "the server changed rows by foreign keys and did not write them to its binlog: …",
        child_rows_deleted,
        DRAIN,
        nothing,
        then=("cdc snapshot shop {database}.children", *DRAINED),
        hint="cdc snapshot",
    ),
}
TABLES = (
    (
        "CREATE TABLE parts_one (id INT PRIMARY KEY, v VARCHAR(20), n INT) PARTITION BY RANGE (id) "
        "(PARTITION used VALUES LESS THAN (10), PARTITION unused VALUES LESS THAN (20))"
    ),
    "CREATE TABLE parts_two (id INT PRIMARY KEY, v VARCHAR(20), n INT)",
    "INSERT INTO parts_one VALUES (1, 'a', 1)",
    "INSERT INTO parts_two VALUES (101, 'b', 1)",
    "CREATE TABLE grö (id INT PRIMARY KEY)",
    "INSERT INTO grö VALUES (1), (2)",
    "CREATE TABLE parents (id INT PRIMARY KEY)",
    "CREATE TABLE children (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE)",
    "INSERT INTO parents VALUES (1), (2)",
    "INSERT INTO children VALUES (10, 1), (11, 1), (20, 2)",
)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_what_the_page_says_ends_each_stop_of_a_statement_and_the_tables_are_equal_afterwards(
    request, flavor, tmp_path, lake, monkeypatch, subtests
):
    """Each prints its message; the binlog is read on, and tables are read again where the row says so."""
    server, database = (request.getfixturevalue(f"{flavor}_{one}") for one in ("server", "database"))
    shop = BinlogShop.on_running_spark(server, database, tmp_path, lake, monkeypatch)
    shop.others, shop.numbers = Others(monkeypatch), count(1)
    for statement in TABLES:
        shop.execute(statement)
    shop.write(routes=[{"tables": f"{database}.parts_*", "into": f"{database}.parts"}])
    shop.runs(2)
    for name, stop in ((OF_MYSQL if flavor == "mysql" else OF_MARIADB) | STOPS).items():
        with subtests.test(name):
            stop.follow(shop)
    shop.change(next(shop.numbers))
    shop.runs(1)
    while shop.cursor("lake")["position"] != shop.cursor("drain")["position"]:  # each epoch is a merge
        shop.runs(1)
    shop.assert_equal()
