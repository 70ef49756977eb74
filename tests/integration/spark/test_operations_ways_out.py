"""Runs the procedures of docs/operations.md: each fault is caused on a real server, and the procedure ends with equal tables.

Commands run through the CLI in this process, on the running Spark. Each command must be on the page.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from cdc_lib.config import load_source
from cdc_lib.lake.location import sqlite_file
from cdc_lib.store import layout
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from tests.harness.servers.replication import replicated
from tests.harness.shop.source import PAGE, Shop, on_the_page


@pytest.fixture
def any_server(request):
    """Each scenario runs on one server, alternating."""
    flavor = ("mysql", "mariadb")[zlib.crc32(request.node.name.encode()) & 1]
    return request.getfixturevalue(f"{flavor}_server")


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    """A merged shop, whose lake has one change after its snapshot."""
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.runs(2)
    shop.change(1)
    shop.runs(1)
    return shop


@dataclass(frozen=True)
class Way:
    """A fault, its error, and the procedure of the page.

    Args:
        section: a heading or a message of the page.
        happens: causes the fault.
        shows: error of the next ``cdc run shop``, with … for what is filled in; empty if it succeeds.
        commands: of the page, in order; ``cdc run shop`` is repeated until all is merged.
        by_hand: manual steps of the page, before the commands.
    """

    section: str
    happens: Callable[[Shop], object]
    shows: str
    commands: tuple[str, ...]
    by_hand: Callable[[Shop], object] = lambda _: None


SNAPSHOT = "cdc snapshot shop shop.orders"
DROP = "cdc lake drop shop shop.orders"


def lake_rows_wrong(shop):
    shop.sql("UPDATE {t} SET v = 'wrong' WHERE id IN (3, 4)")
    shop.sql("DELETE FROM {t} WHERE id = 5")


def dropped(shop):
    shop.sql("DROP TABLE {t}")
    shop.change(2)


def rolled_back(shop):
    first = shop.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    shop.call("rollback_to_snapshot", f"snapshot_id => {first}")
    shop.change(2)


def renamed_in_the_lake(shop):
    shop.sql("ALTER TABLE {t} RENAME COLUMN v TO w")
    shop.change(2)


def replaced(shop):
    shop.sql("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT id, v, n FROM {t} WHERE id < 7")
    shop.change(2)


def lake_files(shop):
    """Return the folder of the lake table."""
    ((location,),) = [row[1:2] for row in shop.sql("DESCRIBE EXTENDED {t}") if row[0] == "Location"]
    return Path(urlsplit(location).path)


def data_files_lost(shop):
    for path in lake_files(shop).rglob("*.parquet"):
        path.unlink()
    shop.change(2)


def lake_folder_lost(shop):
    shutil.rmtree(lake_files(shop))
    shop.change(2)


def foreign_commit_and_expiry(shop):
    shop.sql("INSERT INTO {t} (id, v, n) VALUES (900, 'foreign', 1)")
    shop.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
    shop.change(2)


def three_windows(shop):
    for number in (2, 3, 4):
        shop.change(number)
        shop.drain()


def manifest_deleted(shop):
    three_windows(shop)
    shop.lose(shop.waiting()[0].key)


def part_deleted(shop):
    three_windows(shop)
    folder = shop.waiting()[1].key.removesuffix(layout.MANIFEST)
    shop.lose(*[info.key for info in shop.store.list(folder) if info.key.endswith(".parquet")])


def part_deleted_in_the_merge_in_flight(shop):
    part_deleted(shop)
    shop.cdc("cdc step merge shop", code=1)


def manifest_deleted_in_the_merge_in_flight(shop):
    merge_planned(shop)
    shop.lose(shop.waiting()[0].key)


def chunk_deleted(shop):
    shop.cdc(SNAPSHOT)
    shop.drain()
    chunks = [info.key for info in shop.store.list(layout.snapshots_prefix("shop")) if ".orders/" in info.key]
    shop.lose(*[key for key in chunks if key.endswith(layout.MANIFEST)])


def manifest_deleted_and_binlog_purged(shop):
    manifest_deleted(shop)
    shop.execute("FLUSH BINARY LOGS")
    shop.change(5)
    shop.drain()
    shop.server.purge_binlogs()


def archived_manifest_deleted_and_binlog_purged(shop):
    shop.write(raw_archive=True)
    manifest_deleted_and_binlog_purged(shop)


def binlog_purged(shop):
    shop.change(2)
    shop.execute("FLUSH BINARY LOGS")
    shop.server.purge_binlogs()


def exported(shop):
    (shop.folder / "shop-cursors.json").write_text(shop.cdc("cdc cursor export shop"))
    shop.change(2)
    shop.drain()


def drain_cursor_deleted(shop):
    exported(shop)
    shop.lose(layout.cursor_key("shop", "drain"))


def lake_cursor_deleted(shop):
    exported(shop)
    shop.lose(layout.cursor_key("shop", "lake"))


def cursors_deleted(shop):
    exported(shop)
    shop.lose(layout.cursor_key("shop", "drain"), layout.cursor_key("shop", "lake"))


def cursor_damaged(shop):
    exported(shop)
    (shop.folder / "store" / layout.cursor_key("shop", "lake")).write_text("{")


def remove_damaged_cursor(shop):
    shop.lose(layout.cursor_key("shop", "lake"))


def store_lost(shop):
    shop.execute("DELETE FROM orders WHERE id BETWEEN 10 AND 15")
    shop.lose(*[info.key for info in shop.store.list("")])


def not_row(shop):
    with shop.server.connect(database=shop.database) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("UPDATE orders SET v = 'unseen' WHERE id = 6")
        session.commit()


def type_changed(shop):
    shop.execute("ALTER TABLE orders MODIFY n VARCHAR(20)")
    shop.execute("UPDATE orders SET n = 'text' WHERE id = 2")


def other_contents(shop):
    shop.change(2)
    shop.drain()


def merge_planned(shop):
    other_contents(shop)
    importlib.import_module("cdc_lib.pipeline").Pipeline.open(
        load_source(shop.folder / "sources" / "shop.yaml"), SimpleNamespace()
    ).plan_merge(by="test")


def later_changes(shop):
    """Merge changes from a time on; MariaDB's binlog has whole seconds."""
    time.sleep(1.1)
    shop.since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    shop.change(2)
    shop.runs(1)


def invalid_text(shop):
    """Write a byte that is not in the column's character set."""
    shop.execute("ALTER TABLE orders ADD c VARCHAR(9) CHARACTER SET cp1250")
    shop.execute("INSERT INTO orders VALUES (300, 'x', 1, _cp1250 X'81')")
    shop.change(2)


def repair_text(shop):
    shop.execute("UPDATE orders SET c = 'text' WHERE id = 300")
    shop.after = "{}:{}".format(*shop.execute("SHOW BINARY LOGS")[-1][:2])


def repair_text_and_quarantine(shop):
    repair_text(shop)
    shop.write(on_error="quarantine")


def quarantined(shop):
    shop.write(on_error="quarantine")
    invalid_text(shop)
    shop.runs(1)
    (status,) = json.loads(shop.cdc("cdc status shop --json"))
    assert [table["table"] for table in status["lagging"]] == [f"{shop.database}.orders"]


def batches_gone_and_rows_lost(shop):
    later_changes(shop)
    shop.sql("DELETE FROM {t} WHERE id = 2 OR id > 100")
    (shop.folder / "again").mkdir()
    newest = stored_windows(shop.store, "shop")[-1]
    folder = newest.key.removesuffix(layout.MANIFEST)
    shop.lose(*[info.key for info in shop.store.list(folder)])


def archive_kept_and_rows_lost(shop):
    shop.write(raw_archive=True)
    later_changes(shop)
    shop.sql("DELETE FROM {t} WHERE id = 2 OR id > 100")
    (shop.folder / "again").mkdir()


def move_store(shop):
    shop.change(2)
    old, new = shop.folder / "store", shop.folder / "elsewhere"
    shutil.copytree(old, new)
    shop.write(store={"url": f"file://{new}"})
    shutil.rmtree(old)
    shop.store = LocalStore(new)


def new_source(shop):
    """Do the steps 1 to 3 of the page."""
    shop.change(2)
    (shop.folder / "shop-cursors.json").write_text(shop.cdc("cdc cursor export shop"))
    (shop.folder / "sources" / "shop.yaml").unlink()
    shop.name = "shop2"
    shop.write(start="snapshot")
    for table in ("orders", "`lines`"):
        shop.lake.spark.sql(f"DROP TABLE lake.{shop.database}.{table}")


def table_comes_and_goes(shop):
    """A table is excluded, changes, and is captured again; another table is new."""
    shop.write(tables={"include": [f"{shop.database}.*"], "exclude": [f"{shop.database}.orders"]})
    shop.change(2)
    shop.runs(1)
    shop.write(tables=[f"{shop.database}.*"])
    shop.execute("CREATE TABLE late (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    shop.execute("INSERT INTO late VALUES (1, 'late', 1)")
    shop.runs(2)
    assert shop.rows("late") == [(1, "late", 1)]


def lake_of_a_backup(shop):
    """Restore the catalog to the state when the cursors were exported."""
    place = "SELECT metadata_location, table_name FROM iceberg_tables WHERE table_namespace = ?"
    with closing(sqlite3.connect(sqlite_file(shop.lake.config.lake.uri))) as catalog:
        before = catalog.execute(place, (shop.database,)).fetchall()
    exported(shop)
    shop.runs(1)
    shop.change(3)
    shop.drain()
    with closing(sqlite3.connect(sqlite_file(shop.lake.config.lake.uri))) as catalog:
        back = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ? AND table_namespace = ?"
        catalog.executemany(back, [(*row, shop.database) for row in before])
        catalog.commit()
    assert len(before) == 2


def store_of_a_backup(shop):
    store = shop.folder / "store"
    shutil.copytree(store, shop.folder / "backup")
    for number in (2, 3):
        shop.change(number)
        shop.runs(1)
    shutil.rmtree(store)
    shutil.copytree(shop.folder / "backup", store)


def newer_release_wrote(shop):
    shop.change(2)
    file = shop.folder / "store" / layout.cursor_key("shop", "lake")
    shutil.copy(file, shop.folder / "kept")
    file.write_text(json.dumps({**json.loads(file.read_text()), "format_version": 2}))


def put_cursor_back(shop):
    shutil.copy(shop.folder / "kept", shop.folder / "store" / layout.cursor_key("shop", "lake"))


def lost_in_the_lake(shop):
    later_changes(shop)
    shop.sql("DELETE FROM {t} WHERE id = 2 OR id > 100")


WAYS = {
    "rows_repaired": Way("Rows that are wrong", lake_rows_wrong, "", ("cdc verify shop shop.orders --repair",)),
    "table_new_snapshot": Way("Take a new snapshot of a table", lake_rows_wrong, "", (SNAPSHOT,)),
    "part_read_again": Way(
        "Read a part of a table again", lake_rows_wrong, "", ("cdc snapshot shop shop.orders --key-from 0 --key-to 99",)
    ),
    "condition_read_again": Way(
        "Read a part of a table again", lake_rows_wrong, "",
        ("""cdc snapshot shop shop.orders --where "v IN ('v3', 'v4') OR n = 5" """,),
    ),
    "part_given_up_for_the_whole_table": Way(
        "Read a part of a table again", lake_rows_wrong, "",
        ("cdc snapshot shop shop.orders --key-from 4", "cdc snapshot shop --cancel shop.orders", SNAPSHOT),
    ),
    "lake_table_dropped": Way("Foreign changes of lake tables", dropped, "does not exist any more", (SNAPSHOT,)),
    "lake_table_rolled_back": Way("it was rolled back to", rolled_back, "it was rolled back to", (SNAPSHOT,)),
    "lake_column_renamed_and_read_again": Way(
        "the lake table … has other columns than the last merge left: its column … was renamed to …",
        renamed_in_the_lake, "was renamed to", (SNAPSHOT,),
    ),
    "lake_column_renamed_back": Way(
        "the lake table … has other columns than the last merge left: its column … was renamed to …", renamed_in_the_lake, "was renamed to", (),
        lambda shop: shop.sql("ALTER TABLE {t} RENAME COLUMN w TO v"),
    ),
    "lake_table_replaced": Way("the lake table … was replaced", replaced, "was replaced", (DROP, SNAPSHOT)),
    "marker_expired": Way(
        "no snapshot of the lake table has the property", foreign_commit_and_expiry, "has the property", (DROP, SNAPSHOT)
    ),
    "data_files_lost": Way("Lost files of a lake table", data_files_lost, "could not merge", (SNAPSHOT,)),
    "lake_folder_lost": Way("Lost files of a lake table", lake_folder_lost, "could not read the lake table", (SNAPSHOT,)),
    "lake_folder_lost_and_dropped": Way(
        "Lost files of a lake table", lake_folder_lost, "could not read the lake table", (DROP, SNAPSHOT)
    ),
    "manifest_deleted": Way(
        "Missing batches", manifest_deleted, "the batch of window … is acknowledged and no longer stored",
        ("cdc batches refill shop",),
    ),
    "manifest_deleted_in_flight": Way(
        "a batch that the merge needs has no manifest", manifest_deleted_in_the_merge_in_flight, "has no manifest",
        ("cdc batches refill shop",),
    ),
    "part_deleted": Way("Missing batches", part_deleted, "there is no such object", ("cdc batches refill shop",)),
    "part_deleted_in_flight": Way(
        "Missing batches", part_deleted_in_the_merge_in_flight, "there is no such object", ("cdc batches refill shop",)
    ),
    "gap_without_binlog": Way(
        "Missing batches", manifest_deleted_and_binlog_purged, "no longer stored", ("cdc batches refill shop --over",)
    ),
    "gap_decoded_from_the_archive": Way(
        "Missing batches", archived_manifest_deleted_and_binlog_purged, "no longer stored", ("cdc batches refill shop",)
    ),
    "chunk_deleted": Way(
        "chunk … of the snapshot of … is acknowledged and no longer stored, so the lake cannot continue", chunk_deleted,
        "no longer stored", (SNAPSHOT,),
    ),
    "binlog_purged": Way(
        "Continue after a gap", binlog_purged, "no longer has the cursor's binlog file",
        ("cdc cursor rewind shop --position {oldest}:4", "cdc snapshot shop '*.*'"),
    ),
    "drain_cursor_restored": Way(
        "Lost cursors", drain_cursor_deleted, "the … cursor is missing, and …",
        ("cdc cursor restore shop drain --file {folder}/shop-cursors.json",),
    ),
    "drain_cursor_from_the_lake": Way(
        "Lost cursors", drain_cursor_deleted, "the … cursor is missing, and …",
        ("cdc cursor restore shop --rebuild",),
    ),
    "lake_cursor_from_the_cut": Way(
        "Lost cursors", lake_cursor_deleted, "the … cursor is missing, and …", ("cdc cursor restore shop --rebuild",)
    ),
    "both_cursors_from_the_cut": Way(
        "Lost cursors", cursors_deleted, "the … cursor is missing, and …", ("cdc cursor restore shop --rebuild",)
    ),
    "both_cursors_restored": Way(
        "Lost cursors", cursors_deleted, "the … cursor is missing, and …",
        ("cdc cursor restore shop --file {folder}/shop-cursors.json",),
    ),
    "damaged_cursor": Way(
        "it is not JSON", cursor_damaged, "it is not JSON",
        ("cdc cursor restore shop --file {folder}/shop-cursors.json",), remove_damaged_cursor,
    ),
    "store_lost": Way(
        "A lost store", store_lost, "with another id or name", ("cdc step plan shop", "cdc snapshot shop '*.*'"),
    ),
    "statement_without_rows": Way(
        "a statement that changed rows without writing them to the binlog", not_row, "without writing them", (SNAPSHOT,)
    ),
    "merge_rolled_back": Way("Roll a merge back", merge_planned, "", ("cdc step rollback shop", "cdc step merge shop")),
    "rewound": Way(
        "Rewind and undo", later_changes, "", ("cdc cursor locate shop --time {since}", "cdc cursor rewind shop --time {since}")
    ),
    "rewound_and_taken_back": Way(
        "Rewind and undo", later_changes, "", ("cdc cursor rewind shop --time {since}", "cdc cursor rewind shop --undo")
    ),
    "invalid_text_skipped": Way(
        "Skip an event", invalid_text, "that are not valid",
        ("cdc cursor locate shop --position {after}", "cdc cursor rewind shop --position {after}", "cdc snapshot shop '*.*'"), repair_text,
    ),
    "invalid_text_snapshot": Way("bytes that are not valid", invalid_text, "that are not valid", (SNAPSHOT,), repair_text),
    "quarantined_then_resumed": Way(
        "Release a table that is quarantined", quarantined, "",
        ("cdc quarantine list shop", "cdc quarantine resume shop shop.orders"), repair_text,
    ),
    "stopped_then_quarantined_and_resumed": Way(
        "`on_error: quarantine` after a window has failed", invalid_text, "that are not valid",
        ("cdc run shop", "cdc quarantine resume shop shop.orders"), repair_text_and_quarantine,
    ),
    "drained_again_from_the_server": Way(
        "Repair or rebuild from batches", batches_gone_and_rows_lost, "",
        (
            "cdc batches replay shop --since {since} --location file://{folder}/again",
            "cdc backfill shop --batches file://{folder}/again",
        ),
    ),
    "drained_again_from_the_archive": Way(
        "Repair or rebuild from batches", archive_kept_and_rows_lost, "",
        (
            "cdc batches replay shop --from-archive --since {since} --location file://{folder}/again",
            "cdc backfill shop --batches file://{folder}/again",
        ),
    ),
    "store_moved": Way("Move the store", lambda _: None, "", ("cdc doctor", "cdc run shop"), move_store),
    "new_source": Way("Start a source again", lambda _: None, "", ("cdc doctor", "cdc run shop2"), new_source),
    "table_comes_back": Way("Add or remove a table", table_comes_and_goes, "", (SNAPSHOT,)),
    "lake_of_a_backup": Way(
        "Back up and restore", lake_of_a_backup, "lacks what was merged",
        ("cdc cursor restore shop lake --file {folder}/shop-cursors.json",),
    ),
    "store_of_a_backup": Way("Back up and restore", store_of_a_backup, "", ("cdc run shop",)),
    "upgraded": Way(
        "Upgrade", lambda shop: shop.change(2), "",
        ("cdc cursor export shop", "cdc --version", "cdc doctor", "cdc run shop"),
    ),
    "older_release_after_a_newer_one": Way(
        "has format_version", newer_release_wrote, "has format_version 2", ("cdc run shop",), put_cursor_back
    ),
    "lake_rows_lost_and_backfilled": Way(
        "Repair or rebuild from batches", lost_in_the_lake, "",
        (
            "cdc backfill shop --dry-run",
            "cdc backfill shop shop.orders --into copy",
            "cdc backfill shop shop.orders --since {since}",
            "cdc backfill shop",
        ),
    ),
    "column_type_changed": Way(
        "that cannot be changed without loss", type_changed, "", ("cdc run shop",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_what_the_page_says_to_do_ends_with_equal_tables(shop, name):
    """The fault causes the error on the page, the commands succeed, and every row equals the source."""
    way = WAYS[name]
    assert way.section in PAGE
    way.happens(shop)
    if way.shows:
        printed = " ".join(shop.cdc("cdc run shop", code=1).split())
        assert all(part.strip() in printed for part in way.shows.split("…")), printed
    way.by_hand(shop)
    for command in way.commands:
        assert on_the_page(command), f"{command} is not on the page"
        oldest = shop.execute("SHOW BINARY LOGS")[0][0]
        shop.cdc(command.format(oldest=oldest, folder=shop.folder, since=shop.since, after=shop.after))
    shop.runs(4 if way.commands or way.shows else 1)
    shop.change(9)
    shop.runs(1)
    shop.assert_equal()


def test_wrong_rows_are_found_and_repaired(shop):
    """The report has both values of a wrong row; the results of the repair and of ``cdc status`` are as on the page."""
    lake_rows_wrong(shop)
    report = shop.folder / "orders.html"
    for command, code in (
        (f"cdc verify shop shop.orders --html {report}", 1),
        ("cdc status shop", 0),
        ("cdc verify shop shop.orders --repair", 0),
    ):
        assert on_the_page(command)
        shop.cdc(command, code=code)
    assert {"wrong", "v3", "v4"} <= set(re.findall(r"\w+", report.read_text()))
    shop.assert_equal()


@pytest.fixture
def with_standby(tmp_path, lake, monkeypatch):
    """Make a merged shop on a primary, with its standby under ``standbys:``."""
    with ExitStack() as stack:

        def _with_standby(kind):
            pair = stack.enter_context(replicated(kind))
            pair.primary.execute("CREATE DATABASE seen")
            pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
            pair.primary.execute(f"CREATE DATABASE {lake.database}")
            shop = Shop.on_running_spark(pair.primary, lake.database, tmp_path, lake, monkeypatch)
            standby = {"host": pair.standby.host, "port": pair.standby.port}
            shop.write(standbys=[standby], failover={"attempts": 1, "fallback_interval": "1s"})
            shop.runs(2)
            pair.wait("seen.t")
            return shop, pair

        yield _with_standby


def _continues(shop, pair):
    """Write to the new server, and compare the lake with it."""
    shop.server = pair.standby
    for number in (3, 4):
        shop.change(number)
        shop.runs(1)
    shop.assert_equal()
    assert shop.cursor("drain")["epoch"] == 2


def test_a_planned_failover_goes_as_the_page_says(with_standby):
    """Commands of *Failover* on the page: the old server to its end, then the new one from the same position."""
    shop, pair = with_standby("mysql with GTIDs")
    shop.change(2)
    pair.wait("seen.t")
    to = f"{pair.standby.host}:{pair.standby.port}"
    for command in ("cdc run shop", f"cdc cursor failover shop --to {to}", "cdc status shop"):
        assert on_the_page(command)
        output = shop.cdc(command)
    assert "by GTIDs" in " ".join(output.split())
    pair.release()
    _continues(shop, pair)


def test_a_lost_primary_needs_no_action(with_standby):
    """The next plan fails over to the standby."""
    shop, pair = with_standby("mariadb")
    shop.change(2)
    shop.drain()
    pair.wait("seen.t")
    pair.promote()
    _continues(shop, pair)


def test_the_procedure_removes_transactions_that_only_the_lake_has(with_standby):
    """`failover.on_missing_transactions: ignore`, and the tables snapshotted again."""
    shop, pair = with_standby("mysql with GTIDs")
    pair.cut_off()
    shop.change(2)
    shop.runs(1)
    pair.promote()
    assert "it never had transactions that were read" in " ".join(shop.cdc("cdc run shop", code=1).split())
    shop.write(failover={"attempts": 1, "fallback_interval": "1s", "on_missing_transactions": "ignore"})
    for command in ("cdc run shop", "cdc snapshot shop '*.*'"):
        assert on_the_page(command)
        shop.cdc(command)
    shop.runs(2)
    _continues(shop, pair)


def test_a_consumer_whose_batch_is_missing_starts_again(shop):
    """It gets an error, is dropped and subscribed again as *Consumers* says; the lake continues."""
    shop.change(9)
    shop.runs(1)
    shop.cdc("cdc tail shop --consumer audit")
    shop.change(2)
    shop.runs(1)
    shop.change(3)
    shop.runs(1)
    lost = stored_windows(shop.store, "shop")[-2]
    shop.lose(*[info.key for info in shop.store.list(lost.key.removesuffix(layout.MANIFEST))])
    assert "the batch that comes next is no longer stored" in shop.cdc("cdc tail shop --consumer audit", code=1)
    for command in ("cdc consumers list shop", "cdc consumers drop shop audit"):
        assert on_the_page(command)
        shop.cdc(command)
    assert on_the_page("cdc tail shop --consumer audit --start earliest")
    output = shop.cdc("cdc tail shop --consumer audit --start earliest")
    assert "new3" in output
    assert "new2" not in output
    shop.change(4)
    shop.runs(1)
    assert "new4" in shop.cdc("cdc tail shop --consumer audit")
    shop.assert_equal()
