"""XA transactions end to end: their rows are in the lake only after their commit, with its position."""

from __future__ import annotations

import pytest

from cdc_lib.merge.load import load_plan
from cdc_lib.model.cursor import LAKE
from spark_jobs.merging.run import merge, needs_spark, run
from tests.harness.binlog import xa
from tests.harness.binlog.capture import SOURCE, Capture


class Source:
    """A captured database and its lake."""

    def __init__(self, server, database, folder, lake, **settings):
        settings = {"start": "latest", "lake": lake.config.lake.model_dump(), **settings}
        self.capture = Capture(server, database, folder, **settings)
        self.lake = lake
        self.server = server
        self.database = database
        self.execute = self.capture.execute
        self.plans = []

    def drain(self):
        pipeline = self.capture.pipeline
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")

    def merge(self):
        pipeline = self.capture.pipeline
        plan = pipeline.plan_merge(by="test")
        assert plan is not None
        assert pipeline.plan_merge(by="again") == plan
        self.again(plan)
        pipeline.ack_lake(by="test")
        self.plans.append(plan)

    def again(self, plan):
        config, store = self.capture.config, self.capture.store
        if needs_spark(config, store, load_plan(store, plan)):
            merge(self.lake.spark, config, plan, store, self.lake.said.append)
        else:
            run(config, plan, store)

    def round(self):
        self.drain()
        self.merge()

    def prepare(self, xid, *statements):
        xa.prepare(self.server, self.database, xid, *statements)

    def rows(self, table="a", *columns):
        return self.lake.rows(f"{self.database}.{table}", *(columns or ("id", "v")))

    def open(self):
        return [entry.prepared.xid for entry in self.capture.pipeline.cursors.load(SOURCE, LAKE).prepared]


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    source = Source(any_server, database, tmp_path, lake)
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))")
    source.drain()
    source.execute("INSERT INTO a VALUES (1, 'old'), (2, 'old'), (3, 'old')")
    source.round()
    yield source
    xa.rollback_all(any_server)


X1, X2 = "X'7831',X'',1", "X'7832',X'',1"


def test_rows_appear_with_the_commit_and_have_its_position(source):
    """Over four windows and two files; the cursor has the open transactions; other rows appear with their own commits."""
    source.prepare(
        "'x1'", "INSERT INTO a VALUES (4, 'x1')", "UPDATE a SET v = 'x1' WHERE id = 1", "DELETE FROM a WHERE id = 2"
    )
    source.round()
    assert source.rows() == [(1, "old"), (2, "old"), (3, "old")]
    assert source.open() == [X1]
    source.execute("FLUSH BINARY LOGS")
    source.execute("UPDATE a SET v = 'plain' WHERE id = 3")
    source.round()
    assert source.rows() == [(1, "old"), (2, "old"), (3, "plain")]
    before = source.capture.head()
    xa.commit(source.server, "'x1'")
    source.round()
    assert source.rows() == [(1, "x1"), (3, "plain"), (4, "x1")]
    assert source.open() == []
    orders = source.rows("a", "id", "_binlog", "_offset", "_row")
    places = {place[0]: place[1:3] for place in orders}
    assert places[1] == places[4] > (before.file_number, before.offset) > places[3]
    rows = {place[0]: place[3] for place in orders}
    assert rows[4] < rows[1]
    source.execute("UPDATE a SET v = 'later' WHERE id = 1")
    source.round()
    assert source.rows() == [(1, "later"), (3, "plain"), (4, "x1")]


def test_changes_of_a_row_before_and_after_the_commit_are_ordered(source):
    """All in one window: the change before the prepare, the transaction, the change after its commit."""
    source.execute("UPDATE a SET v = 'before' WHERE id IN (1, 2)")
    source.prepare("'x1'", "UPDATE a SET v = 'x1' WHERE id IN (1, 2)")
    source.prepare("'x2'", "UPDATE a SET v = 'x2' WHERE id = 3")
    xa.commit(source.server, "'x1'")
    source.execute("UPDATE a SET v = 'after' WHERE id = 2")
    xa.rollback(source.server, "'x2'")
    xa.in_one_phase(source.server, source.database, "'x3'", "INSERT INTO a VALUES (5, 'x3')")
    source.round()
    assert source.rows() == [(1, "x1"), (2, "after"), (3, "old"), (5, "x3")]
    assert source.open() == []


def test_a_repeated_merge_changes_nothing(source):
    """Neither with the prepare nor with the commit, also after the rows were deleted."""
    name = f"{source.database}.a"
    source.prepare("'x1'", "INSERT INTO a VALUES (4, 'x1'), (5, 'x1')")
    source.execute("UPDATE a SET v = 'plain' WHERE id = 1")
    source.round()
    xa.commit(source.server, "'x1'")
    source.round()
    source.execute("DELETE FROM a WHERE id = 4")
    source.round()
    expected = [(1, "plain"), (2, "old"), (3, "old"), (5, "x1")]
    assert source.rows() == expected
    before = source.lake.snapshots(name)
    for plan in source.plans:
        source.again(plan)
    assert source.rows() == expected
    assert source.lake.snapshots(name) == before


def test_a_rollback_in_a_later_window_discards_the_rows(source):
    """And its xid may be used again."""
    source.prepare("'x1'", "INSERT INTO a VALUES (4, 'first')")
    source.round()
    xa.rollback(source.server, "'x1'")
    source.prepare("'x1'", "INSERT INTO a VALUES (4, 'second')")
    source.round()
    assert source.rows() == [(1, "old"), (2, "old"), (3, "old")]
    xa.commit(source.server, "'x1'")
    source.round()
    assert source.rows() == [(1, "old"), (2, "old"), (3, "old"), (4, "second")]


def test_a_table_that_only_a_transaction_writes_to_is_created_at_its_commit(source):
    """Its columns come from the batch of the prepare; a table without a key gets the rows as changes."""
    source.execute("CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20))")
    source.execute("CREATE TABLE log (v VARCHAR(20))")
    source.prepare("'x1'", "INSERT INTO b VALUES (1, 'b')", "INSERT INTO log VALUES ('one'), ('two')")
    source.round()
    assert source.lake.target(f"{source.database}.b").load() is None
    xa.commit(source.server, "'x1'")
    source.round()
    assert source.rows("b") == [(1, "b")]
    assert source.rows("log", "_op", "v") == [("c", "one"), ("c", "two")]


def test_a_column_added_between_prepare_and_commit_is_null_in_its_rows(source):
    """The column is added with another window; the transaction's file does not have it."""
    source.execute("CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(20))")
    source.prepare("'x1'", "INSERT INTO a VALUES (4, 'x1')")
    source.round()
    source.execute("ALTER TABLE b ADD COLUMN w INT")
    source.execute("INSERT INTO b VALUES (1, 'b', 2)")
    xa.commit(source.server, "'x1'")
    source.execute("ALTER TABLE a ADD COLUMN w INT")
    source.execute("INSERT INTO a VALUES (5, 'new', 7)")
    source.round()
    assert source.rows("a", "id", "v", "w")[-2:] == [(4, "x1", None), (5, "new", 7)]


def test_partial_images_are_completed_at_the_commit(source):
    """From the transaction's own changes and from the lake's existing row."""
    source.execute("ALTER TABLE a ADD COLUMN w INT")
    source.execute("UPDATE a SET w = id * 10")
    source.round()
    source.prepare(
        "'x1'",
        "UPDATE a SET v = 'whole' WHERE id = 1",
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE a SET w = 11 WHERE id = 1",
        "UPDATE a SET v = 'part' WHERE id = 2",
    )
    source.round()
    assert source.rows("a", "id", "v", "w") == [(1, "old", 10), (2, "old", 20), (3, "old", 30)]
    xa.commit(source.server, "'x1'")
    source.round()
    assert source.rows("a", "id", "v", "w") == [(1, "whole", 11), (2, "part", 20), (3, "old", 30)]
