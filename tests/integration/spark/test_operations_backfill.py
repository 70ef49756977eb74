"""*Backfill and redrain* of docs/operations.md: batches that are missing or do not fit, in turn on one shop with its lake."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

import spark_jobs.backfill
from cdc_lib.store import layout
from cdc_lib.store.windows import stored_windows
from spark_jobs.merging.table_merge import ATTEMPTS
from tests.harness.binlog import xa
from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Others, Stop, follow_all, nothing

ORDERS = "cdc backfill shop shop.orders"


def begin(shop):
    """Remember this second, with which a period may begin; MariaDB's binlog has whole seconds."""
    time.sleep(1.1)
    shop.since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def merged(shop, count=1):
    """Merge changes of their own windows."""
    for _ in range(count):
        shop.number += 1
        shop.change(shop.number)
        shop.runs(1)


def lose_rows(shop):
    shop.sql("DELETE FROM {t} WHERE id > 100")


def folder_of(window):
    return window.key.removesuffix(layout.MANIFEST)


def objects_of(shop, *windows):
    return [info.key for window in windows for info in shop.store.list(folder_of(window))]


def take_away(shop, *windows):
    """Remove batches from the store, as a rule for old objects in a bucket would."""
    shop.lose(*objects_of(shop, *windows))


def copy_under_another_key(shop):
    """Deleted rows are kept under the old key: so neither the lake table nor its copy can get another one."""
    keyed = f"{shop.database}.keyed"
    shop.write(modes=[{"tables": keyed, "mode": "soft_delete"}])
    shop.execute("CREATE TABLE keyed (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL, n INT)")
    shop.execute("INSERT INTO keyed VALUES (1, 'a', 1), (2, 'b', 2)")
    shop.runs(2)
    shop.cdc(f"cdc backfill shop {keyed} --into copy")
    shop.execute("ALTER TABLE keyed DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    shop.runs(1)
    begin(shop)
    shop.lake.spark.sql(f"DROP TABLE lake.{keyed}")
    shop.cdc(f"cdc snapshot shop {keyed}")
    shop.runs(2)


def copy_dropped(shop):
    shop.lake.spark.sql(f"DROP TABLE lake.{shop.database}.keyed__backfill")


def merged_meanwhile(shop):
    lose_rows(shop)
    shop.others.act_before(spark_jobs.backfill, "merge_all", lambda: merged(shop), ATTEMPTS)


def tool_at_work(shop):
    """gh-ost adds a column before the period, and renames the tables in it."""
    shop.execute("CREATE TABLE _lines_gho LIKE `lines`")
    shop.execute("ALTER TABLE _lines_gho ADD COLUMN w INT DEFAULT 7")
    shop.execute("INSERT INTO _lines_gho (id, v, n) SELECT id, v, n FROM `lines`")
    shop.runs(1)
    begin(shop)
    shop.execute("RENAME TABLE `lines` TO _lines_del, _lines_gho TO `lines`")
    shop.execute("DROP TABLE _lines_del")
    shop.runs(1)


def raw_events_damaged(shop):
    shop.write(raw_archive=True)
    begin(shop)
    merged(shop)
    newest = stored_windows(shop.store, "shop")[-1]
    (events,) = [key for key in objects_of(shop, newest) if key.endswith(layout.raw_events_path())]
    file = shop.folder / "store" / events
    file.write_bytes(file.read_bytes()[:-20])
    lose_rows(shop)
    (shop.folder / "again").mkdir()


def middle_removed(shop):
    """The server still has the changes, and the store lacks a window between others."""
    begin(shop)
    merged(shop, 3)
    take_away(shop, stored_windows(shop.store, "shop")[-2])
    lose_rows(shop)
    (shop.folder / "middle").mkdir()


def committed_in_the_period(shop):
    """The batches before the period are removed, which hold the rows of a transaction that is committed in it."""
    xa.prepare(shop.server, shop.database, "'x'", "UPDATE `lines` SET n = 70 WHERE id = 5")
    shop.runs(1)
    until_then = stored_windows(shop.store, "shop")
    merged(shop)
    begin(shop)
    xa.commit(shop.server, "'x'")
    shop.runs(1)
    take_away(shop, *until_then)


def after_the_commit(shop):
    begin(shop)
    merged(shop)
    lose_rows_of(shop, 1)


def removed_by_age(shop):
    merged(shop, 2)
    shop.write(store={**shop.settings["store"], "keep_batches_for": "0s"})
    shop.cdc("cdc batches gc shop --yes")
    shop.write(store={"url": shop.settings["store"]["url"]})
    merged(shop)


def rows_lost_later(shop):
    begin(shop)
    merged(shop, 2)
    lose_rows_of(shop, 2)


def lose_rows_of(shop, changes):
    """Delete the lake's rows of the last changes."""
    shop.sql(f"DELETE FROM {{t}} WHERE id > {100 + shop.number - changes}")


def table_dropped(shop):
    begin(shop)
    merged(shop)
    shop.sql("DROP TABLE {t}")


STOPS = {
    "copy_under_another_key": Stop(
        "the table beside the lake table keeps rows by …, and the rows of this time have …", copy_under_another_key,
        "cdc backfill shop {database}.keyed --into copy --since {since}", copy_dropped,
        then=("cdc backfill shop {database}.keyed --into copy --since {since}",), hint="or take another --copy-suffix",
    ),
    "merged_meanwhile": Stop("another merge moved the table meanwhile", merged_meanwhile, ORDERS, nothing, then=(ORDERS,)),
    "tool_at_work": Stop(
        "an online schema change tool ended in the time that is merged again, and began before it", tool_at_work,
        "cdc backfill shop {database}.lines --since {since}", nothing, then=("cdc backfill shop {database}.lines",),
        hint="Use an earlier --since",
    ),
    "raw_events_damaged": Stop(
        "the raw archive of a window cannot be read: …", raw_events_damaged,
        "cdc batches replay shop --from-archive --since {since} --location file://{folder}/again", nothing,
        then=(
            "cdc batches replay shop --since {since} --location file://{folder}/again",
            "cdc backfill shop shop.orders --since {since} --batches file://{folder}/again", ORDERS,
        ),
        hint="cdc batches replay without --from-archive",
    ),
    "middle_removed": Stop(
        "the batches after … are no longer stored, and what is merged again must reach …", middle_removed,
        "cdc backfill shop shop.orders --since {since}", nothing,
        then=(
            "cdc batches replay shop --since {since} --location file://{folder}/middle",
            "cdc backfill shop shop.orders --since {since} --batches file://{folder}/middle",
        ),
        hint="cdc batches replay",
    ),
    "committed_in_the_period": Stop(
        "the XA transaction … is committed in this time, and its rows are in no batch that is stored", committed_in_the_period,
        "cdc backfill shop {database}.lines --since {since}", after_the_commit,
        then=("cdc backfill shop --since {since}",), hint="Take a --since after its XA COMMIT",
    ),
    "removed_by_age": Stop(
        "a part of … is no longer stored: …", removed_by_age, "cdc backfill shop --since {since}", rows_lost_later,
        then=("cdc backfill shop --since {since}",), hint="Use a later --since",
    ),
    "table_dropped": Stop(
        "the lake table is not there, and the batches of this time do not hold all of its rows", table_dropped,
        "cdc backfill shop shop.orders --since {since}", nothing,
        then=("cdc snapshot shop shop.orders", "cdc run shop", "cdc run shop"), hint="cdc snapshot",
    ),
}  # fmt: skip


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.number, shop.others = 0, Others(monkeypatch)
    shop.runs(2)
    return shop


def test_what_the_page_says_ends_each_stop_of_a_backfill_and_the_tables_are_equal_afterwards(shop, subtests):
    """Each prints its message; what its row says restores the lake's rows."""
    follow_all(shop, STOPS, subtests, last_change=19)
