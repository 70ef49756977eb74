"""A table that is read again equals its source afterwards, whatever stood in the lake and whatever was in flight."""

from __future__ import annotations

import time

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import ConfigError, MergeConflict, MergeError, PositionPurged
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.model.cursor import LAKE
from cdc_lib.store.cuts import cut_of
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.merging.run import merge, needs_spark, run
from spark_jobs.sql import full_name
from tests.harness.binlog.capture import SOURCE, Capture, first_chunk

TABLES = ("one", "two", "list")


class Shop:
    """A captured database with two tables and one without a key, and its lake."""

    def __init__(self, server, database, folder, lake, **settings):
        settings = {"lake": lake.config.lake.model_dump(), "snapshot": {"chunk_rows": 2}, **settings}
        self.capture = Capture(server, database, folder, **settings)
        self.lake = lake
        self.execute = self.capture.execute
        for table in ("one", "two"):
            self.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9), w INT DEFAULT 7)")
        self.execute("CREATE TABLE list (id INT, v VARCHAR(9), w INT)")
        for table in TABLES:
            self.execute(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")

    @property
    def pipeline(self):
        return self.capture.pipeline

    def name(self, table):
        return f"{self.capture.database}.{table}"

    def drain(self):
        for unit in self.pipeline.plan(by="test"):
            self.pipeline.drain(unit)
        self.pipeline.ack_drain(by="test")

    def merge(self, plan):
        config, store = self.capture.config, self.capture.store
        if needs_spark(config, store, load_plan(store, plan)):
            return merge(self.lake.spark, config, plan, store, self.lake.said.append)
        return run(config, plan, store)

    def round(self):
        """Plan, drain, ack, merge, ack; returns the cut, or None when there was nothing to merge."""
        self.drain()
        plan = self.pipeline.plan_merge(by="test")
        if plan is None:
            return None
        cut = self.merge(plan)
        self.pipeline.ack_lake(by="test")
        return cut

    def partly(self, *statements):
        """Run statements in a session that leaves out of the binlog what it can."""
        with self.capture.server.connect(database=self.capture.database) as session, session.cursor() as cursor:
            for statement in ("SET SESSION binlog_row_image = 'MINIMAL'", *statements):
                cursor.execute(statement)

    def resnapshot(self, *tables):
        return requests.resnapshot(
            self.pipeline, [self.name(table) for table in tables], by="test", why="the lake is wrong"
        )

    def purge(self):
        """Leave the newest file alone, as soon as the server lets the others go; returns its name."""
        self.execute("FLUSH BINARY LOGS")
        deadline = time.monotonic() + 60
        while len(self.execute("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < deadline
            self.execute(f"PURGE BINARY LOGS TO '{self.capture.head().file}'")
            time.sleep(0.2)
        return self.capture.head().file

    def assert_equal(self, *tables):
        for table in tables or TABLES:
            wanted = sorted(tuple(row) for row in self.execute(f"SELECT id, v, w FROM {table}"))
            assert self.rows(table) == wanted

    def ops(self, table):
        return [op for (op,) in self.lake.rows(self.name(table), "_op")]

    def rows(self, table):
        """Return the rows of a lake table; of the list of changes, the rows that it adds up to."""
        if table != "list":
            return self.lake.rows(self.name(table), "id", "v", "w")
        rows = []
        order = ("_epoch", "_binlog", "_offset", "_row")
        changes = self.lake.rows(self.name(table), *order, "_op", "id", "v", "w")
        for *_, op, id_, v, w in sorted(changes, key=lambda row: row[:4]):
            if op == "t":
                rows.clear()
            else:
                rows.remove((id_, v, w)) if op == "d" else rows.append((id_, v, w))
        return sorted(rows)


@pytest.fixture
def shop(any_server, database, tmp_path, lake):
    return Shop(any_server, database, tmp_path, lake)


def test_a_resnapshotted_table_equals_its_source(shop):
    """Rows that the source does not have are gone, those that were lost are back, and changes meanwhile count."""
    shop.round()
    shop.assert_equal()
    shop.lake.spark.sql(f"UPDATE {shop.lake.name(shop.name('one'))} SET v = 'wrong', id = id + 90 WHERE id > 1")
    shop.lake.spark.sql(f"DELETE FROM {shop.lake.name(shop.name('list'))} WHERE id = 2")
    shop.execute("INSERT INTO one VALUES (4, 'd', 4)")
    shop.execute("INSERT INTO list VALUES (4, 'd', 4)")
    shop.resnapshot("one", "list")
    shop.execute("DELETE FROM one WHERE id = 3")
    shop.execute("UPDATE list SET v = 'x' WHERE id = 1")
    shop.execute("UPDATE two SET v = 'y' WHERE id = 1")
    *_, last = [cut for cut in (shop.round(), shop.round(), shop.round()) if cut is not None]
    shop.assert_equal()
    assert {one.as_of for one in last.tables} == {None}
    assert sorted(shop.ops("list")) == sorted("rrtrrrr")
    shop.execute("DELETE FROM one WHERE id = 1")
    shop.execute("INSERT INTO list VALUES (5, 'e', 5)")
    shop.round()
    shop.assert_equal()


def test_an_unchanged_table_is_resnapshotted_too(shop):
    """Both snapshots are read at one place in the binlog; what the first one brought gives way."""
    shop.round()
    for table in ("one", "list"):
        shop.lake.spark.sql(f"UPDATE {shop.lake.name(shop.name(table))} SET id = id + 90 WHERE id = 2")
    shop.resnapshot("one", "list")
    shop.round()
    shop.round()
    shop.assert_equal()
    assert sorted(shop.ops("list")) == ["r", "r", "r", "t"]


def test_a_dropped_lake_table_is_made_again(shop):
    """As when its columns fit no more."""
    shop.round()
    shop.lake.spark.sql(f"DROP TABLE {shop.lake.name(shop.name('one'))} PURGE")
    shop.resnapshot("one")
    shop.execute("UPDATE two SET v = 'y' WHERE id = 1")
    shop.round()
    shop.round()
    shop.assert_equal()


def test_a_snapshot_that_is_asked_for_twice_is_merged_once_and_right(shop):
    """What the first one read counts for nothing."""
    shop.round()
    shop.resnapshot("one")
    shop.drain()
    shop.execute("DELETE FROM one WHERE id = 2")
    shop.resnapshot("one")
    shop.execute("UPDATE one SET v = 'new' WHERE id = 1")
    shop.round()
    shop.round()
    shop.assert_equal()


def test_a_first_snapshot_that_is_not_complete_is_taken_again(shop):
    """Its chunks were not merged, and count for nothing."""
    reader, identity = shop.capture.reader, shop.capture.facts().identity
    (task,) = [unit for unit in shop.pipeline.plan(by="test") if unit.table == "one"]
    first_chunk(reader, task, identity)
    shop.pipeline.ack_drain(by="test")
    assert shop.pipeline.plan_merge(by="test") is None
    shop.execute("DELETE FROM one WHERE id = 1")
    shop.resnapshot("one")
    shop.execute("DELETE FROM one WHERE id = 2")
    shop.round()
    shop.round()
    shop.assert_equal()


def test_a_resnapshotted_shard_replaces_only_its_own_rows(any_server, database, tmp_path, lake):
    """Those of the others in the table that they share stay as they are."""
    route = {"tables": f"{database}.*", "into": f"{database}.all", "keys": ["table"]}
    only = {"include": [f"{database}.one", f"{database}.two"]}
    shop = Shop(any_server, database, tmp_path, lake, routes=[route], tables=only)
    shop.round()
    (shared,) = lake_merges(shop.capture.config, [shop.name("one"), shop.name("two")])
    name = full_name(shared.name)
    lake.spark.sql(f"UPDATE {name} SET id = id + 90 WHERE id = 2")
    shop.resnapshot("one")
    shop.round()
    shop.round()
    rows = lake.spark.sql(f"SELECT _source_table, id, v, w FROM {name} ORDER BY 1, 2").collect()
    one, two = ([tuple(row)[1:] for row in rows if row[0] == table] for table in ("one", "two"))
    assert one == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    assert two == [(1, "a", 1), (3, "c", 3), (92, "b", 2)]


@pytest.fixture
def from_now_on(any_server, database, tmp_path, lake):
    """A lake that has one whole round of a source without snapshots."""
    shop = Shop(any_server, database, tmp_path, lake, start="latest")
    shop.pipeline.plan(by="test")
    for table in TABLES:
        shop.execute(f"DELETE FROM {table}")
        shop.execute(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 2)")
    shop.round()
    shop.assert_equal("one", "two")
    return shop


def stuck(shop):
    """Bring an incomplete row into the merge in flight, beside changes of another table; returns the plan."""
    shop.partly("INSERT INTO one (id, v) VALUES (5, 'five')")
    shop.execute("UPDATE two SET v = 'y' WHERE id = 1")
    shop.drain()
    plan = shop.pipeline.plan_merge(by="test")
    with pytest.raises(MergeError, match="does not contain all columns of some rows"):
        shop.merge(plan)
    return plan


def test_a_new_snapshot_leads_out_of_a_merge_that_an_incomplete_row_stops(from_now_on):
    """Nothing else is needed: the rounds continue, and the table equals its source, deletes in between included."""
    shop = from_now_on
    stuck(shop)
    with pytest.raises(MergeError):
        shop.round()
    shop.execute("DELETE FROM one WHERE id = 2")
    shop.resnapshot("one")
    shop.execute("UPDATE one SET v = 'six' WHERE id = 5")
    shop.execute("UPDATE two SET v = 'z' WHERE id = 2")
    for _ in range(3):
        shop.round()
    shop.assert_equal("one", "two")
    shop.execute("UPDATE one SET w = 1")
    shop.round()
    shop.assert_equal("one", "two")
    kinds = [move.kind for move in shop.pipeline.cursors.load(SOURCE, LAKE).moves]
    assert kinds.count("rollback") == 1


def test_a_merge_that_was_withdrawn_and_still_runs_does_no_harm(from_now_on, monkeypatch):
    """Neither when it ends before the new one nor when it is overtaken; it publishes no cut."""
    shop = from_now_on
    shop.execute("INSERT INTO one VALUES (5, 'e', 5)")
    shop.execute("INSERT INTO two VALUES (5, 'e', 5)")
    shop.drain()
    old = shop.pipeline.plan_merge(by="test")
    real, overtaken = ArrowRows.apply, []

    def after_the_other(*arguments, **named):
        if not overtaken:
            overtaken.append(True)
            shop.resnapshot("one")
            shop.execute("DELETE FROM one WHERE id IN (1, 5)")
            shop.round()
            shop.execute("DELETE FROM two WHERE id = 5")
            shop.round()
            shop.round()
        return real(*arguments, **named)

    monkeypatch.setattr(ArrowRows, "apply", after_the_other)
    with pytest.raises(MergeConflict, match="planned again"):
        shop.merge(old)
    assert overtaken
    assert cut_of(shop.capture.store, SOURCE, old.merge_id) is None
    shop.assert_equal("one", "two")


def test_a_rolled_back_merge_that_still_runs_is_harmless(from_now_on):
    """Its batches come again with the next plan, and the markers tell that the tables have them."""
    shop = from_now_on
    shop.execute("INSERT INTO one VALUES (5, 'e', 5)")
    shop.execute("INSERT INTO list VALUES (5, 'e', 5)")
    shop.drain()
    old = shop.pipeline.plan_merge(by="test")
    rolled_back = requests.rollback(shop.pipeline, by="somebody", why="to see")
    assert (rolled_back.in_flight, rolled_back.moves[-1].kind, rolled_back.moves[-1].why) == ((), "rollback", "to see")
    shop.execute("DELETE FROM one WHERE id = 1")
    shop.drain()
    new = shop.pipeline.plan_merge(by="test")
    assert set(old.batches) < set(new.batches)
    with pytest.raises(MergeConflict, match="planned again"):
        shop.merge(old)
    before = shop.ops("list")
    shop.merge(new)
    shop.pipeline.ack_lake(by="test")
    shop.assert_equal("one", "two")
    assert shop.ops("list") == before
    assert before.count("c") == 3
    with pytest.raises(ConfigError, match="no merge is in flight"):
        requests.rollback(shop.pipeline, by="test", why="")


def test_a_snapshot_cancelled_in_flight_restores_no_deleted_row(shop):
    """Its merge ends after the one that brought the newer snapshot, and rows were deleted in between."""
    shop.round()
    shop.resnapshot("one")
    shop.drain()
    shop.drain()
    old = shop.pipeline.plan_merge(by="test")
    assert [key for key in old.batches if "/snapshots/" in key]
    shop.execute("DELETE FROM one WHERE id = 2")
    shop.resnapshot("one")
    shop.round()
    shop.round()
    shop.assert_equal()
    with pytest.raises(MergeConflict, match="planned again"):
        shop.merge(old)
    shop.assert_equal()


def test_a_source_whose_binlog_was_purged_continues_with_new_snapshots_in_its_lake(shop):
    """A rewind to what the server has, and all tables again: the lake follows into the new epoch and equals the source."""
    shop.round()
    shop.execute("UPDATE one SET v = 'merged' WHERE id = 1")
    shop.drain()
    for table in TABLES:
        shop.execute(f"DELETE FROM {table} WHERE id = 2")
        shop.execute(f"INSERT INTO {table} VALUES (8, 'lost', 8)")
    purged = shop.purge()
    with pytest.raises(PositionPurged):
        shop.drain()
    requests.rewind(shop.pipeline, StartAt(position=f"{purged}:4"), by="test", why="purged")
    shop.resnapshot("*")
    for table in TABLES:
        shop.execute(f"INSERT INTO {table} VALUES (9, 'later', 9)")
    for _ in range(3):
        shop.round()
    shop.assert_equal()
    assert shop.pipeline.cursors.load(SOURCE, LAKE).epoch == 2
