"""Archived batches merged again from a time in which a table had another primary key than its lake table has now."""

from __future__ import annotations

import re
import shlex
import time
from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.backfill.archive import BackfillArchive, period_of
from cdc_lib.backfill.other_key import left_out_line
from cdc_lib.backfill.preview import preview
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillRequest, Period
from cdc_lib.model.lake_table import ORDER
from spark_jobs.backfill import backfill
from tests.harness.lake.ddl_source import Followed


class Rekeyed:
    """A table that had the key (k, id), got the key (id) and was read again, and changed before and after that."""

    def __init__(self, server, database, folder, lake, mode):
        modes = [{"tables": f"{database}.t", "mode": mode}]
        self.source = Followed(server, database, folder, lake, reselect={"mode": "never"}, modes=modes)
        self.table, self.lake = f"{database}.t", lake
        self.source.run("CREATE TABLE t (id INT, k INT, v VARCHAR(20), PRIMARY KEY (k, id))")
        self.source.run("INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')")
        self.source.round()
        self.source.run("UPDATE t SET v = 'old key' WHERE id = 1", "DELETE FROM t WHERE id = 3")
        self.source.round()
        self.rekeyed_at = moment()
        self.source.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)", "UPDATE t SET k = 7 WHERE id = 2")
        if mode in ("soft_delete", "scd2"):
            self.begin_again()
        self.rounds()
        self.read_again_at = moment()
        self.source.run("UPDATE t SET v = 'new key', k = 8 WHERE id = 1", "INSERT INTO t VALUES (4, 4, 'd')")
        self.source.round()

    def rounds(self):
        """Merge until the snapshot is in the lake."""
        for _ in range(3):
            self.source.round()

    def begin_again(self):
        """Do what the refusal says where deleted rows or versions stay."""
        with pytest.raises(IncompatibleSchema, match="--replace"):
            self.rounds()
        self.sql("DROP TABLE {t} PURGE")
        requests.resnapshot(self.source.capture.pipeline, [self.table], by="test", why="another key")

    def previewed(self, period=None, into="live"):
        """Return the lines about keys that a dry run says."""
        capture = self.source.capture
        archive = BackfillArchive(capture.pipeline)
        found = preview(archive, BackfillRequest(period or Period(), (self.table,), into))
        assert found.refused == ()
        return [left_out_line(one) for one in found.left_out]

    def backfill(self, period=None, into="live"):
        """Backfill, and return the lines about keys."""
        said = []
        capture = self.source.capture
        wanted = BackfillRequest(period or Period(), (self.table,), into)
        backfill(self.lake.spark, capture.config, capture.pipeline, wanted, said.append)
        return [line for line in said if "primary key" in line]

    def rows(self, suffix=""):
        found = self.lake.spark.sql(f"SELECT * FROM lake.{self.table}{suffix}").collect()
        return sorted((row.asDict() for row in found), key=repr)

    def sql(self, statement):
        self.lake.spark.sql(statement.format(t=f"lake.{self.table}"))


def order_key(row):
    return tuple(row[name] for name in ORDER[:3])


def moment():
    """Return a time after everything that happened and before everything that will."""
    time.sleep(0.01)
    found = datetime.now(UTC)
    time.sleep(0.01)
    return found


@pytest.mark.parametrize("mode", ["mirror", "append", "soft_delete", "scd2"])
def test_windows_of_the_former_key_are_left_out_where_a_snapshot_replaced_the_table(
    mysql_server, mysql_database, tmp_path, lake, mode
):
    """The rest is repaired, in the lake table and in one that is built again; the output says what was left out."""
    rekeyed = Rekeyed(mysql_server, mysql_database, tmp_path, lake, mode)
    before = rekeyed.rows()
    said_before = rekeyed.previewed(Period(None, rekeyed.rekeyed_at))
    (line,) = rekeyed.backfill(Period(None, rekeyed.rekeyed_at))
    assert said_before == [line]
    assert re.search(r"1 window of rows with the primary key \(k, id\) left out: .* by the primary key \(id\)", line)
    assert rekeyed.rows() == before
    rekeyed.sql("DELETE FROM {t} WHERE id = 4 OR k = 7")
    rekeyed.sql("UPDATE {t} SET v = 'wrong' WHERE k = 8")
    assert rekeyed.rows() != before
    assert rekeyed.previewed() == rekeyed.backfill()
    assert rekeyed.rows() == before
    rekeyed.sql("DROP TABLE {t} PURGE")
    assert rekeyed.backfill()
    built = rekeyed.rows()
    begin = min(order_key(row) for row in built)
    assert built == [row for row in before if order_key(row) >= begin]
    assert {row["v"] for row in built} >= {"b", "new key", "d"}
    assert lake.state(rekeyed.table).primary_key == ("id",)
    if mode == "mirror":
        rekeyed.source.assert_equal("t")


@pytest.mark.parametrize("end", ["DROP TABLE t", "RENAME TABLE t TO u"])
def test_a_table_that_the_source_dropped_is_left_as_it_is(mysql_server, mysql_database, tmp_path, lake, end):
    """Its last rows had another key. No snapshot can replace them, and the other tables of the backfill are repaired."""
    source = Followed(mysql_server, mysql_database, tmp_path, lake, reselect={"mode": "never"})
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE other (id INT PRIMARY KEY)")
    source.run("INSERT INTO t VALUES (1, 1)", "INSERT INTO other VALUES (1)")
    source.round()
    source.run(
        "DROP TABLE t", "CREATE TABLE t (id INT, v INT, PRIMARY KEY (id, v))", "INSERT INTO t VALUES (1, 1)", end
    )
    source.round(twice=True)
    table, other = f"lake.{mysql_database}.t", f"lake.{mysql_database}.other"
    before = lake.spark.sql(f"SELECT * FROM {table}").collect()
    lake.spark.sql(f"DELETE FROM {other}")
    capture, said = source.capture, []
    archive = BackfillArchive(capture.pipeline)
    assert preview(archive, BackfillRequest(Period(), (), "live")).refused == ()
    backfill(lake.spark, capture.config, capture.pipeline, BackfillRequest(Period(), (), "live"), said.append)
    assert [line for line in said if "because the source dropped the table" in line and f"{mysql_database}.t:" in line]
    assert lake.spark.sql(f"SELECT * FROM {table}").collect() == before != []
    source.assert_equal("other")


@pytest.mark.parametrize("mode", ["mirror", "append", "scd2"])
def test_a_copy_is_built_from_the_snapshot_with_the_new_key_on(mysql_server, mysql_database, tmp_path, lake, mode):
    """Where it was begun with rows of the former key, the refusal names the command that builds it, which does.

    Versions cannot be kept by another key: such a table beside is dropped before.
    """
    rekeyed = Rekeyed(mysql_server, mysql_database, tmp_path, lake, mode)
    said_before = rekeyed.previewed(into="copy")
    assert rekeyed.backfill(into="copy") == said_before != []
    whole = rekeyed.rows(COPY_SUFFIX)
    assert whole == [row for row in rekeyed.rows() if order_key(row) >= min(map(order_key, whole))]
    rekeyed.sql("DROP TABLE {t}" + COPY_SUFFIX)
    assert rekeyed.previewed(Period(None, rekeyed.rekeyed_at), into="copy") == []
    assert rekeyed.backfill(Period(None, rekeyed.rekeyed_at), into="copy") == []
    assert lake.state(rekeyed.table + COPY_SUFFIX).primary_key == ("k", "id")
    with pytest.raises(IncompatibleSchema, match="has rows with the primary key") as refused:
        rekeyed.backfill(Period(rekeyed.read_again_at, None), into="copy")
    words = shlex.split(refused.value.hint.partition(": ")[2])
    assert words[:5] == ["cdc", "backfill", rekeyed.source.capture.config.source, rekeyed.table, "--since"]
    assert words[6:] == ["--into", "copy"]
    period = period_of(words[5], None)
    if mode == "scd2":
        with pytest.raises(IncompatibleSchema, match="or take another --copy-suffix"):
            rekeyed.backfill(period, into="copy")
        rekeyed.sql("DROP TABLE {t}" + COPY_SUFFIX)
    rekeyed.backfill(period, into="copy")
    built = rekeyed.rows(COPY_SUFFIX)
    assert [row for row in built if order_key(row) >= min(map(order_key, whole))] == whole
    assert mode == "append" or built == whole
    assert lake.state(rekeyed.table + COPY_SUFFIX).primary_key == ("id",)
