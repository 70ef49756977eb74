"""Stops of docs/operations.md that one corrected line or command ends: in turn on one shop, whose tables equal the source afterwards."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime

import pytest

from cdc_lib.config import load_source
from cdc_lib.consumers import subscribe_to
from cdc_lib.model.column_rename import RENAMES_PROPERTY
from cdc_lib.model.lake_table import MODE_PROPERTY
from cdc_lib.store.windows import stored_windows
from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Stop, follow_all, nothing


def drain_cursor_of_before(shop):
    (shop.folder / "shop-cursors.json").write_text(shop.cdc("cdc cursor export shop"))
    shop.change(2)
    shop.runs(1)


def consumer_at_work(shop):
    shop.held = subscribe_to(load_source(shop.folder / "sources" / "shop.yaml"), "audit", start="earliest")
    shop.held.__enter__()


def consumer_ends(shop):
    shop.held.__exit__(None, None, None)


def part_of_a_batch_lost(shop):
    shop.change(3)
    shop.runs(1)
    newest = stored_windows(shop.store, "shop")[-1].key.rpartition("/")[0]
    shop.part = next(info.key for info in shop.store.list(newest) if info.key.endswith(".parquet"))
    shutil.move(shop.folder / "store" / shop.part, shop.folder / "part")


def part_of_a_batch_damaged(shop):
    (shop.folder / "store" / shop.part).write_bytes((shop.folder / "part").read_bytes()[:200])


def part_of_a_batch_restored(shop):
    shutil.copy(shop.folder / "part", shop.folder / "store" / shop.part)


def zero_date(shop):
    shop.write(zero_dates="error")
    shop.execute("ALTER TABLE orders ADD d DATE")
    with shop.server.connect(database=shop.database) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("UPDATE orders SET d = '0000-00-00' WHERE id = 4")
        session.commit()


def reserved_in_batches(shop):
    shop.execute("ALTER TABLE orders ADD _op INT")
    shop.change(5)


def reserved_in_the_lake(shop):
    shop.execute("ALTER TABLE orders ADD _deleted INT")
    shop.change(6)


def columns_left_out(shop):
    shop.write(columns=[{"tables": f"{shop.database}.orders", "exclude": ["_op", "_deleted"]}])


def names_of_one(shop):
    shop.execute("ALTER TABLE orders ADD `\u03c3` INT, ADD `\u03c2` INT")
    shop.change(16)


def one_left_out(shop):
    shop.write(columns=[{"tables": f"{shop.database}.orders", "exclude": ["_op", "_deleted", "\u03c2"]}])
    shop.execute("ALTER TABLE orders DROP COLUMN `\u03c2`")


def column_left_out(shop):
    shop.write(columns=[{"tables": f"{shop.database}.orders", "exclude": ["_op"]}])


def other_mode(shop):
    shop.write(modes=[{"tables": f"{shop.database}.orders", "mode": "scd2"}])
    shop.change(7)


def mode_of_a_newer_release(shop):
    set_property(shop, MODE_PROPERTY, "a newer one")
    shop.change(10)


def mode_of_this_release(shop):
    set_property(shop, MODE_PROPERTY, "mirror")


def renames_of_a_newer_release(shop):
    set_property(shop, RENAMES_PROPERTY, '{"format_version": 99}')
    shop.change(11)


def renames_of_this_release(shop):
    shop.sql(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ('{RENAMES_PROPERTY}')")


def set_property(shop, name, value):
    table = shop.lake.name(f"{shop.database}.orders")
    shop.lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{name}' = '{value}')")


def rows_twice(shop):
    shop.sql("INSERT INTO {t} SELECT * FROM {t} WHERE id < 30")
    shop.execute("UPDATE orders SET v = 'twice' WHERE id BETWEEN 10 AND 12")


def excluded_column_renamed(shop):
    shop.execute("ALTER TABLE orders ADD old_secret VARCHAR(9)")
    without(shop, "old_secret")
    shop.change(12)
    shop.runs(1)
    shop.execute("ALTER TABLE orders RENAME COLUMN old_secret TO new_secret")
    shop.execute("UPDATE orders SET new_secret = 'text' WHERE id = 2")


def both_names_excluded(shop):
    without(shop, "old_secret", "new_secret")


def stored_column_renamed(shop):
    shop.execute("ALTER TABLE orders ADD shown INT")
    shop.change(17)
    shop.runs(1)
    shop.execute("ALTER TABLE orders RENAME COLUMN shown TO old_secret")
    shop.execute("UPDATE orders SET old_secret = 3 WHERE id = 2")


def all_names_excluded(shop):
    without(shop, "old_secret", "new_secret", "shown")


def without(shop, *names):
    shop.write(columns=[{"tables": f"{shop.database}.orders", "exclude": ["_op", "_deleted", "\u03c2", *names]}])


def place_for_batches(shop):
    time.sleep(1.1)  # MariaDB's binlog has whole seconds
    shop.since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    shop.change(8)
    shop.runs(1)


def planned(shop):
    shop.change(1)
    shop.cdc("cdc --debug step plan shop")


STOPS = {
    "not_drained": Stop(
        "… units are in flight, and none has written its batch", planned, "cdc step ack drain shop", nothing,
        then=("cdc step drain shop", "cdc step ack drain shop", "cdc run shop"),
    ),
    "lake_ahead_of_the_drain": Stop(
        "the lake cursor is at …, after the position to which the drain would go back", drain_cursor_of_before,
        "cdc cursor restore shop drain --file {folder}/shop-cursors.json", nothing, 2,
        ("cdc cursor restore shop --file {folder}/shop-cursors.json", "cdc run shop"),
    ),
    "consumer_held": Stop(
        "the consumer … is held by …", consumer_at_work, "cdc tail shop --consumer audit", consumer_ends,
        then=("cdc tail shop --consumer audit",),
    ),
    "file_of_a_batch_lost": Stop(
        "there is no such object", part_of_a_batch_lost, "cdc tail shop --consumer audit", part_of_a_batch_damaged, then=()
    ),
    "file_of_a_batch_damaged": Stop(
        "a file of a batch cannot be read: …", nothing, "cdc tail shop --consumer audit", part_of_a_batch_restored,
        then=("cdc tail shop --consumer audit",),
    ),
    "zero_date": Stop(
        "column …: a date with a zero or impossible part", zero_date, "cdc run shop",
        lambda shop: shop.write(zero_dates="null"),
    ),
    "reserved_in_batches": Stop(
        "column … has a name that is reserved in the lake", reserved_in_batches, "cdc run shop", column_left_out, 2
    ),
    "reserved_in_the_lake": Stop(
        "column … has a name that is reserved in the lake", reserved_in_the_lake, "cdc run shop", columns_left_out,
        then=("cdc snapshot shop shop.orders", "cdc run shop", "cdc run shop"),
    ),
    "names_of_one": Stop(
        "columns … and … have names that Spark takes for one", names_of_one, "cdc run shop", one_left_out, 2
    ),
    "other_mode": Stop(
        "the lake table has the mode …, and the source file says …", other_mode, "cdc run shop",
        lambda shop: shop.write(modes=[]),
    ),
    "mode_of_a_newer_release": Stop(
        "the lake table's property … is …, which this release does not know", mode_of_a_newer_release, "cdc run shop",
        mode_of_this_release,
    ),
    "renames_of_a_newer_release": Stop(
        "the property … of the lake table cannot be read: …", renames_of_a_newer_release, "cdc run shop",
        renames_of_this_release,
    ),
    "rows_twice": Stop(
        "the number of rows of the lake table does not add up: …", rows_twice, "cdc run shop", nothing,
        then=("cdc snapshot shop shop.orders", "cdc run shop", "cdc run shop"), hint="cdc snapshot shop",
    ),
    "excluded_column_renamed": Stop(
        "column … was renamed to …, and the source file stores … differently from …", excluded_column_renamed,
        "cdc run shop", both_names_excluded, 0, ("cdc quarantine resume shop shop.orders", "cdc run shop", "cdc run shop"),
    ),
    "stored_column_renamed": Stop(
        "column … was renamed to …, and the source file stores … differently from …", stored_column_renamed,
        "cdc run shop", all_names_excluded,
    ),
    "table_to_compare": Stop(
        "no captured table is named …", nothing, "cdc verify shop other.*", nothing, 2, ("cdc verify shop shop.orders",)
    ),
    "no_lake_table": Stop(
        "the lake has no table …", nothing, "cdc lake preview shop {database}.none", nothing, 2,
        ("cdc lake preview shop shop.orders",),
    ),
    "pattern": Stop(
        "not a pattern of tables: …", nothing, "cdc backfill shop orders --dry-run", nothing, 2,
        ("cdc backfill shop shop.orders --dry-run",),
    ),
    "no_raw_events": Stop(
        "the raw events of a window were not kept", place_for_batches,
        "cdc batches replay shop --from-archive --since {since} --location file://{folder}/again", nothing,
        then=("cdc batches replay shop --since {since} --location file://{folder}/again",),
    ),
    "suffix": Stop(
        "not a suffix of a table's name: …", nothing, "cdc backfill shop --into copy --copy-suffix 'a b'", nothing, 2, ()
    ),
    "suffix_of_another_table": Stop(
        "… is a lake table itself", nothing, "cdc backfill shop --into copy --copy-suffix _2", nothing, 2,
        ("cdc backfill shop shop.orders --into copy --copy-suffix _again",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_what_the_page_says_ends_each_stop_and_the_tables_are_equal_afterwards(
    request, flavor, tmp_path, lake, monkeypatch, subtests
):
    """Each prints its message with its exit status; the commands that follow succeed."""
    server, database = (request.getfixturevalue(f"{flavor}_{one}") for one in ("server", "database"))
    server.execute("CREATE TABLE orders_2 (id INT PRIMARY KEY)", database=database)
    server.execute("INSERT INTO orders_2 VALUES (1)", database=database)
    shop = Shop.on_running_spark(server, database, tmp_path, lake, monkeypatch)
    shop.runs(2)
    follow_all(shop, STOPS, subtests, last_change=9)
