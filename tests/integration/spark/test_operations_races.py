"""Stops of docs/operations.md that another task or tool causes at a moment of a command's work: what the page says ends each."""

from __future__ import annotations

import pytest

from cdc_lib.drain import window as drain_window
from cdc_lib.errors import MergeConflict
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.verify.whole.tables import Verifier
from spark_jobs.iceberg import lake_table
from spark_jobs.iceberg.row_delta import RowCommit
from spark_jobs.merging.table_merge import ATTEMPTS, TableMerge
from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Others, Stop, follow_all, nothing


def compacted(shop):
    """Another tool writes the table's files again before each attempt of the merge is published."""

    def compact():
        shop.call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    shop.execute("UPDATE orders SET v = 'first' WHERE id = 1")
    shop.others.act_before(RowCommit, "publish", compact, ATTEMPTS)


def another_ack(shop):
    shop.change(2)
    shop.cdc("cdc step drain shop")
    shop.others.act_before(ObjectCursorStore, "swap", lambda: shop.cdc("cdc step ack drain shop"))


def rewound_and_merged(shop):
    def rewind():
        file, end = shop.execute("SHOW BINARY LOGS")[-1][:2]
        shop.cdc(f"cdc cursor rewind shop --position {file}:{end} --why 'the others were read'")
        shop.change(3)
        shop.runs(2)

    shop.others.act_before(Verifier, "_state", rewind)


def rolled_back_at_once(shop):
    """Another tool takes the merged rows out of the table before the merge has looked."""
    (last,) = shop.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at DESC LIMIT 1")
    shop.execute("UPDATE orders SET v = 'merged' WHERE id = 4")
    shop.others.act_after(
        TableMerge, "_applied", lambda: shop.call("rollback_to_snapshot", f"snapshot_id => {last[0]}")
    )


def drained_with_a_mask(shop):
    """Another task has a file with a mask, and is faster."""

    def drain():
        shop.write(masks=[{"tables": f"{shop.database}.orders", "columns": ["v"], "mask": "redact"}])
        shop.cdc("cdc step drain shop")

    shop.change(5)
    shop.cdc("cdc step plan shop")
    shop.after = "{file}:{offset}".format(**shop.cursor("drain")["position"])
    shop.others.act_before(drain_window, "publish_manifest", drain)


def without_the_mask(shop):
    shop.write(masks=[])


STOPS = {
    "another_commit": Stop("another commit came first", compacted, "cdc run shop", nothing),
    "another_ack": Stop(
        "the … cursor was changed after this task loaded it", another_ack, "cdc step ack drain shop", nothing,
        then=("cdc step ack drain shop", "cdc run shop"),
    ),
    "failover_while_comparing": Stop(
        "the lake continued to epoch … while rows of epoch … were compared", rewound_and_merged, "cdc verify shop",
        nothing, then=("cdc verify shop",),
    ),
    "rolled_back_at_once": Stop(
        "the table is not at the position that this merge was to reach", rolled_back_at_once, "cdc run shop", nothing
    ),
    "drained_with_a_mask": Stop(
        "the window was drained before with other contents", drained_with_a_mask, "cdc step drain shop",
        without_the_mask, then=("cdc step ack drain shop", "cdc cursor rewind shop --position {after}", "cdc run shop", "cdc run shop"),
        hint="rewind the cursor to the window's start",
    ),
}  # fmt: skip


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.others = Others(monkeypatch)
    shop.runs(2)
    return shop


def test_what_the_page_says_ends_each_stop_that_others_cause_and_the_tables_are_equal_afterwards(shop, subtests):
    """Each prints its message, and the command succeeds when nobody interferes."""
    follow_all(shop, STOPS, subtests, last_change=9)


def test_a_merge_whose_columns_another_merge_renamed_begins_again(shop):
    """`columns of the lake table were renamed meanwhile`: it is retried at once, and the tables are equal afterwards."""
    conflicts = []
    attempt = TableMerge.attempt

    def recorded(*arguments):
        try:
            return attempt(*arguments)
        except MergeConflict as error:
            conflicts.append(str(error))
            raise

    shop.others.patch.setattr(TableMerge, "attempt", recorded)
    for old, new in (("n", "m"), ("m", "n")):
        shop.execute(f"ALTER TABLE orders RENAME COLUMN {old} TO {new}")
        shop.execute(f"UPDATE orders SET {new} = 70 WHERE id = 7")
        shop.others.act_before(lake_table.IcebergTable, "rename", lambda: shop.cdc("cdc step merge shop"))
        shop.runs(1)
    assert [one.partition(" [")[0] for one in conflicts] == ["columns of the lake table were renamed meanwhile"] * 2
    shop.assert_equal()
