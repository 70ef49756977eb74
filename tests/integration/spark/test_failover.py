"""Another server takes over while something is under way: a table quarantined, a transaction prepared, columns without names."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib import requests
from cdc_lib.backfill.archive import BackfillArchive
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.model.backfill import Period
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.window import Window
from cdc_lib.retention.garbage_collector import carry_out, plan_collection
from cdc_lib.store import layout
from tests.harness.binlog import xa
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import drain_all
from tests.harness.lake.running import Lake
from tests.harness.servers.replication import KINDS, replicated
from tests.harness.shop.quarantine import BAD_TEXT

INTERVAL = 1
"""Seconds to go back where no GTIDs tell the place."""


class Sources:
    """A source over a primary, and over the standby that takes over; both have one lake."""

    def __init__(self, pair, folder, spark_lake):
        self.pair, self.folder = pair, folder
        self.spark, self.config = spark_lake
        self.database = f"shop_{secrets.token_hex(4)}"
        pair.primary.execute(f"CREATE DATABASE {self.database}")
        if pair.kind == "mysql without GTIDs":
            time.sleep(INTERVAL + 0.2)  # a search by time needs a transaction that is known to be earlier
        self.execute("CREATE TABLE seen (id INT PRIMARY KEY, v INT)")

    def execute(self, statement):
        self.pair.primary.execute(statement, database=self.database)

    def over(self, server, **settings):
        tables = {"include": [f"{self.database}.*"], "exclude": ["*.seen"]}
        given = {"start": "latest", "failover": {"fallback_interval": f"{INTERVAL}s"}, "tables": tables, **settings}
        return Capture(server, self.database, self.folder, lake=self.config.lake.model_dump(), **given)

    def settled(self):
        """Wait until the standby has everything, and what comes now is no longer gone back to."""
        self.pair.wait(f"{self.database}.seen")
        time.sleep(INTERVAL + 1.2)

    def promote(self):
        self.pair.wait(f"{self.database}.seen")
        self.pair.promote()

    def merge(self, capture):
        """Merge all that is acknowledged."""
        lake = Lake(self.spark, capture.config, capture.store)
        while (plan := capture.pipeline.plan_merge(by="test")) is not None:
            lake.merge(plan)
            capture.pipeline.ack_lake(by="test")
        return lake

    def round(self, capture):
        drain_all(capture)
        return self.merge(capture)

    def compare(self, capture, table, *columns):
        """All rows that the server shows are in the lake, and no others."""
        found = self.merge(capture).rows(f"{self.database}.{table}", *columns)
        assert found == sorted(tuple(row) for row in capture.execute(f"SELECT {', '.join(columns)} FROM {table}"))


@pytest.fixture(params=KINDS)
def sources(request, tmp_path, spark_lake):
    with replicated(request.param) as pair:
        yield Sources(pair, tmp_path, spark_lake)


def collect_all(capture):
    """Remove every batch that no consumer needs."""
    plan = plan_collection(capture.store, capture.pipeline.cursors, SOURCE, timedelta(), datetime.now(UTC))
    carry_out(capture.store, plan)


def cursor(capture, consumer=DRAIN):
    return capture.pipeline.cursors.load(SOURCE, consumer)


def test_a_table_remains_quarantined_over_a_failover_and_continues_after_its_release(sources):
    """It stands where it was, the others go over, and its snapshot is read from the new server."""
    sources.execute("CREATE TABLE bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
    sources.execute("CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(9))")
    before = sources.over(sources.pair.primary, on_error="quarantine")
    drain_all(before)
    for table in ("bad", "good"):
        sources.execute(f"INSERT INTO {table} VALUES (1, 'before'), (9, 'before')")
    sources.round(before)
    sources.execute(BAD_TEXT)
    sources.execute("INSERT INTO good VALUES (2, 'beside')")
    sources.execute("DELETE FROM bad WHERE id = 9")
    sources.settled()
    sources.round(before)
    (record,) = cursor(before).quarantined_tables
    assert record.epoch == 1
    sources.promote()
    after = sources.over(sources.pair.standby, on_error="quarantine")
    after.execute("INSERT INTO bad VALUES (3, 'after')")
    after.execute("INSERT INTO good VALUES (3, 'after')")
    lake = sources.round(after)
    assert (cursor(after).epoch, cursor(after, LAKE).epoch) == (2, 2)
    assert cursor(after).quarantined_tables == (record,)
    assert lake.rows(record.table, "id", "v") == [(1, "before"), (9, "before")]
    sources.compare(after, "good", "id", "v")
    after.execute("DELETE FROM bad WHERE id = 2")
    sources.round(after)
    released = requests.resume_table(after.pipeline, record.table, by="test")
    assert (released.epoch, released.released_epoch) == (1, 2)
    after.execute("INSERT INTO bad VALUES (4, 'after')")
    sources.round(after)
    assert cursor(after).quarantined_tables == ()
    assert cursor(after, LAKE).position == after.head()
    sources.compare(after, "bad", "id", "v")
    sources.compare(after, "good", "id", "v")


def test_columns_without_names_are_known_at_the_new_server_and_followed_there(sources):
    """The history begins again in the new epoch, and continues over the next ALTER TABLE."""
    for server in (sources.pair.primary, sources.pair.standby):
        server.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    sources.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), n INT UNSIGNED)")
    before = sources.over(sources.pair.primary)
    drain_all(before)
    sources.execute("INSERT INTO t VALUES (1, 'one', 4000000000)")
    sources.execute("ALTER TABLE t ADD COLUMN first_more INT UNSIGNED AFTER id")
    sources.execute("INSERT INTO t VALUES (2, 4000000001, 'two', 7)")
    sources.settled()
    sources.round(before)
    sources.execute("INSERT INTO t VALUES (3, 3, 'three', 4000000002)")
    drain_all(before)
    sources.promote()
    after = sources.over(sources.pair.standby)
    after.execute("UPDATE t SET n = 5 WHERE id = 1")
    drain_all(after)
    after.execute("ALTER TABLE t ADD COLUMN second_more VARCHAR(9) FIRST")
    after.execute("INSERT INTO t VALUES ('more', 4, 4, 'four', 4000000003)")
    sources.round(after)
    assert cursor(after, LAKE).epoch == 2
    versions = [key for key in after.visible() if "/schemas/" in key]
    assert {key.split("/")[2] for key in versions} == {"000001", "000002"}
    sources.compare(after, "t", "id", "first_more", "v", "n", "second_more")


def test_a_transaction_prepared_at_the_old_server_is_committed_at_the_new_one(sources):
    """Its rows come from the old epoch's batch with the new commit; one whose commit is read again comes no second time."""
    sources.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    sources.execute("CREATE TABLE list (v VARCHAR(9))")
    before = sources.over(sources.pair.primary)
    drain_all(before)
    sources.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old'), (3, 'old')")
    primary, standby, database = sources.pair.primary, sources.pair.standby, sources.database
    xa.prepare(primary, database, "'x1'", "UPDATE t SET v = 'x1' WHERE id = 1", "INSERT INTO list VALUES ('x1')")
    xa.prepare(primary, database, "'x2'", "UPDATE t SET v = 'x2' WHERE id = 2")
    xa.prepare(primary, database, "'x3'", "DELETE FROM t WHERE id = 3", "INSERT INTO list VALUES ('x3')")
    sources.settled()
    sources.round(before)
    xa.commit(primary, "'x2'")
    sources.execute("INSERT INTO t VALUES (4, 'last')")
    drain_all(before)
    assert len(cursor(before, LAKE).prepared) == 3
    sources.promote()
    after = sources.over(standby)
    drain_all(after)
    lake = sources.merge(after)
    assert cursor(after, LAKE).epoch == 2
    assert lake.rows(f"{database}.t", "id", "v") == [(1, "old"), (2, "x2"), (3, "old"), (4, "last")]
    assert len(cursor(after, LAKE).prepared) == 2
    xa.commit(standby, "'x1'")
    xa.rollback(standby, "'x3'")
    after.execute("UPDATE t SET v = 'later' WHERE id = 3")
    drain_all(after)
    sources.compare(after, "t", "id", "v")
    assert sources.merge(after).rows(f"{database}.list", "v") == [("x1",)]
    assert cursor(after, LAKE).prepared == ()


@pytest.mark.parametrize("sources", ["mysql with GTIDs", "mariadb"], indirect=True)
def test_a_transaction_whose_commit_was_lost_with_the_old_server_is_committed_at_the_new_one(sources):
    """The lake has merged the lost commit; at the new server the transaction was still open."""
    sources.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    before = sources.over(sources.pair.primary)
    drain_all(before)
    primary, standby, database = sources.pair.primary, sources.pair.standby, sources.database
    sources.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    xa.prepare(primary, database, "'x1'", "UPDATE t SET v = 'first' WHERE id = 2")
    xa.commit(primary, "'x1'")
    xa.prepare(primary, database, "'x1'", "UPDATE t SET v = 'x1' WHERE id = 1")
    sources.pair.wait(f"{database}.seen")
    standby.execute(standby.in_server_syntax("STOP REPLICA"))
    xa.commit(primary, "'x1'")
    sources.round(before)
    assert cursor(before, LAKE).prepared == ()
    sources.pair.promote()
    settings = {"fallback_interval": f"{INTERVAL}s", "on_missing_transactions": "ignore"}
    after = sources.over(standby, failover=settings)
    xa.commit(standby, "'x1'")
    after.execute("UPDATE t SET v = 'later' WHERE id = 2")
    drain_all(after)
    sources.compare(after, "t", "id", "v")
    assert cursor(after, LAKE).epoch == 2
    assert cursor(after, LAKE).prepared == ()


@pytest.mark.parametrize("sources", ["mysql with GTIDs", "mariadb"], indirect=True)
def test_new_snapshots_of_all_tables_replace_a_transaction_whose_batch_was_collected(sources):
    """Its commit was merged, the batch was removed, and then the commit was lost with the server and came again.

    A quarantined table is not waited for: it gets a snapshot at its release.
    """
    sources.execute("CREATE TABLE bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
    sources.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    sources.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    before = sources.over(sources.pair.primary, start="snapshot", on_error="quarantine")
    sources.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    sources.round(before)
    primary, standby, database = sources.pair.primary, sources.pair.standby, sources.database
    sources.execute(BAD_TEXT)
    xa.prepare(primary, database, "'x1'", "UPDATE t SET v = 'x1' WHERE id = 1")
    sources.settled()
    standby.execute(standby.in_server_syntax("STOP REPLICA"))
    xa.commit(primary, "'x1'")
    sources.round(before)
    collect_all(before)
    sources.pair.promote()
    settings = {"fallback_interval": f"{INTERVAL}s", "on_missing_transactions": "ignore"}
    after = sources.over(standby, start="snapshot", on_error="quarantine", failover=settings)
    xa.commit(standby, "'x1'")
    drain_all(after)
    with pytest.raises(MergeError, match="its rows are in no batch") as refused:
        sources.merge(after)
    assert f"cdc snapshot {SOURCE} '*.*'" in refused.value.hint
    requests.resnapshot(after.pipeline, [f"{database}.t"], by="test", why="test")
    drain_all(after)
    with pytest.raises(MergeError, match="its rows are in no batch"):  # the other table may lack its rows
        sources.merge(after)
    requests.resnapshot(after.pipeline, [f"{database}.other"], by="test", why="test")
    after.execute("UPDATE t SET v = 'later' WHERE id = 2")
    drain_all(after)
    sources.compare(after, "t", "id", "v")
    assert cursor(after, LAKE).epoch == 2
    assert [record.table.table for record in cursor(after).quarantined_tables] == ["bad"]
    archive = BackfillArchive(after.pipeline)
    found = archive.found(Period())
    assert archive.plan(found, found.begin, found.end).prepared == ()  # a backfill misses no more rows than the merge


@pytest.mark.parametrize("sources", ["mysql with GTIDs"], indirect=True)
def test_a_late_chunk_ignores_changes_that_only_the_old_server_had(sources):
    """A task that had not heard of the switch has written a window after the place where that server was left."""
    sources.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    before = sources.over(sources.pair.primary)
    sources.settled()
    drain_all(before)
    sources.execute("INSERT INTO t VALUES (1, 'both'), (9, 'both')")
    sources.settled()
    sources.round(before)
    (chunk,) = before.snapshot("t")
    end = cursor(before)
    sources.pair.cut_off()
    sources.execute("INSERT INTO t VALUES (2, 'lost')")
    before.drainer.window(Window(SOURCE, 1, end.position, before.head()), end.identity)
    sources.pair.promote()
    after = sources.over(sources.pair.standby)
    after.execute("DELETE FROM t WHERE id = 9")
    lake = sources.round(after)
    state = cursor(after, LAKE)
    assert state.epoch == 2
    abandoned = MergePlan(
        SOURCE, 2, "late", state.position, state.position, (layout.key_of(chunk),), source_uuid=state.source_uuid
    )
    with pytest.raises(MergeConflict, match="planned again"):
        lake.merge(abandoned)
    sources.compare(after, "t", "id", "v")
