"""Partial snapshots: the lake then equals the source in that part, while windows are merged as usual."""

from __future__ import annotations

from functools import partial

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import tables_of
from cdc_lib.reselect.rows import Reselector
from cdc_lib.snapshot.partial import PartialRequest
from spark_jobs.merging.run import merge, run
from tests.harness.lake.ddl_source import Followed

TABLES = {
    "ints": ("id BIGINT UNSIGNED PRIMARY KEY, v VARCHAR(20)", [(n, f"v{n}") for n in range(1, 12)]),
    "pairs": (
        "a INT, b VARCHAR(20) COLLATE utf8mb4_general_ci, v VARCHAR(20), PRIMARY KEY (a, b)",
        [(a, b, "v") for a in (1, 2) for b in ("a", "B", "c", "D", "f")],
    ),
    "texts": (
        "k VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, v VARCHAR(20)",
        [(k, "v") for k in ("a", "B", "Ärger", "c", "D", "e")],
    ),
}


class Parts(Followed):
    """A followed source whose merges can re-select rows."""

    def merge(self, *, twice: bool = False) -> bool:
        pipeline, config, store = self.capture.pipeline, self.capture.config, self.capture.store
        plan = pipeline.plan_merge(by="test")
        if plan is None:
            return False
        for _ in range(2 if twice else 1):
            if tables_of(batches := load_plan(store, plan)):
                say = self.lake.said.append
                merge(
                    self.lake.spark, config, plan, store, say, batches=batches, origin=partial(Reselector.of, pipeline)
                )
            else:
                run(config, plan, store)
        pipeline.ack_lake(by="test")
        return True

    def ask(self, table, **selection):
        return requests.snapshot_rows(self.capture.pipeline, PartialRequest(self.name(table), **selection), by="test")

    def name(self, table):
        return f"{self.capture.database}.{table}"

    def spoil(self, table, statement):
        """Change rows of the lake directly."""
        self.lake.spark.sql(statement.format(self.lake.name(self.name(table))))


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    source = Parts(any_server, database, tmp_path, lake, reselect={"when_lag_exceeds": None})
    for table, (columns, rows) in TABLES.items():
        source.run(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join(["%s"] * len(rows[0]))
        for row in rows:
            source.capture.execute(f"INSERT INTO {table} VALUES ({marks})", row)
    source.round()
    source.assert_equal(*TABLES)
    return source


def test_a_range_of_keys_equals_the_source_afterwards(source):
    """Wrong, missing and extra rows; keys that are numbers, texts by their collation, or two columns.

    Changes during and after the read are merged, and rows outside the range do not change.
    """
    source.spoil("ints", "UPDATE {} SET v = 'wrong' WHERE id IN (3, 11)")
    source.spoil("ints", "UPDATE {} SET id = id + 0.0 + 90 WHERE id = 11")
    source.spoil("ints", "DELETE FROM {} WHERE id = 4")
    source.spoil("texts", "UPDATE {} SET k = 'bb' WHERE k = 'B'")
    source.spoil("texts", "UPDATE {} SET k = 'z' WHERE k = 'a'")
    source.spoil("pairs", "UPDATE {} SET b = 'Cc' WHERE a = 2 AND b = 'f'")
    asked = {
        "ints": {"lower": "3", "upper": "200"},
        "texts": {"lower": "b", "upper": "d"},
        "pairs": {"lower": '["2", "B"]', "upper": "2"},
    }
    for table, ends in asked.items():
        source.ask(table, why="a test", **ends)
    source.capture.execute("UPDATE ints SET v = 'new' WHERE id = 5")
    source.drain()
    source.capture.execute("DELETE FROM ints WHERE id = 6")
    source.capture.execute("INSERT INTO texts VALUES ('dd', 'outside')")
    source.round(twice=True)
    source.round()
    source.assert_equal("ints", "pairs")
    # Wrong rows outside the range stay wrong.
    assert [k for k, _ in source.lake_rows("texts")] == sorted(["B", "c", "D", "e", "dd", "z", "Ärger"])
    source.run("UPDATE ints SET v = 'last'", "DELETE FROM pairs WHERE a = 2", "UPDATE texts SET v = 'last'")
    source.round()
    source.assert_equal("ints", "pairs")


def test_the_rows_of_a_condition_are_snapshotted_again(source):
    """They replace the lake's rows; rows that the source no longer has stay, as the command says."""
    source.spoil("ints", "UPDATE {} SET v = 'wrong' WHERE id IN (3, 4)")
    source.spoil("ints", "UPDATE {} SET id = id + 0.0 + 90 WHERE id = 11")
    task = source.ask("ints", where="v IN ('v3', 'V11') AND NOT id <= 2")
    source.round()
    source.round()
    rows = dict(source.lake_rows("ints"))
    assert (rows[3], rows[4], rows[11], rows[101]) == ("v3", "wrong", "v11", "v11")
    assert task.selection.where == "`v` IN (_utf8mb4 X'7633', _utf8mb4 X'563131') AND NOT (`id` <= 2)"
    with pytest.raises(ConfigError, match="is in progress"):
        requests.cancel_snapshot(source.capture.pipeline, source.name("ints"))


def test_an_abandoned_partial_snapshot_changes_nothing(source):
    """Also if its chunks are read, or planned to be merged; it can be requested again."""
    source.spoil("ints", "UPDATE {} SET v = 'wrong' WHERE id = 3")
    pipeline, name = source.capture.pipeline, source.name("ints")
    source.ask("ints", lower="1", upper="5")
    with pytest.raises(ConfigError, match="another snapshot"):
        source.ask("ints", upper="9")
    source.drain()
    source.drain()
    assert pipeline.plan_merge(by="test") is not None
    requests.cancel_snapshot(pipeline, name)
    source.round()
    assert ("3", "wrong") in [(str(k), v) for k, v in source.lake_rows("ints")]
    source.ask("ints", upper="3")
    source.run("ALTER TABLE ints ADD COLUMN n INT DEFAULT 5 FIRST", "TRUNCATE pairs")
    source.round()
    source.round()
    source.assert_equal("ints", "pairs")
