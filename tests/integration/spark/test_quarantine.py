"""A quarantined table keeps its last good state in the lake, and equals the source again after it is resumed."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.merge.load import load_plan
from spark_jobs.merging.run import merge, needs_spark, run
from tests.harness.binlog.capture import Capture
from tests.harness.shop.quarantine import as_statement

TABLES = ("bad", "good", "list")


class Source:
    """A captured database with three tables, one of them without a key, and its lake."""

    def __init__(self, server, database, folder, lake):
        self.capture = Capture(
            server, database, folder, on_error="quarantine", lake=lake.config.lake.model_dump(),
            snapshot={"chunk_rows": 2},
        )  # fmt: skip
        self.lake = lake
        self.execute = self.capture.execute
        self.execute("CREATE TABLE bad (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
        self.execute("CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(9))")
        self.execute("CREATE TABLE list (id INT, v VARCHAR(9))")
        for table in TABLES:
            self.execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    def round(self):
        """Plan, drain, ack, merge, ack; returns the cut, or None if there was nothing to merge."""
        pipeline = self.capture.pipeline
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")
        plan = pipeline.plan_merge(by="test")
        if plan is None:
            return None
        config, store = self.capture.config, self.capture.store
        if needs_spark(config, store, load_plan(store, plan)):
            cut = merge(self.lake.spark, config, plan, store, self.lake.said.append)
        else:
            cut = run(config, plan, store)
        pipeline.ack_lake(by="test")
        return cut

    def lake_rows(self, table):
        """Return the rows of a lake table; those of an append table are folded."""
        name = f"{self.capture.database}.{table}"
        if table != "list":
            return self.lake.rows(name, "id", "v")
        rows = []
        order = ("_epoch", "_binlog", "_offset", "_row")
        changes = self.lake.rows(name, *order, "_op", "id", "v")
        for *_, op, id_, v in sorted(changes, key=lambda row: row[:4]):
            if op == "t":
                rows.clear()
            else:
                rows.remove((id_, v)) if op == "d" else rows.append((id_, v))
        return sorted(rows)

    def source_rows(self, table):
        return sorted(tuple(row) for row in self.execute(f"SELECT id, v FROM {table}"))

    def lagging(self, cut):
        return {one.table.partition(".")[2]: one.as_of for one in cut.tables if one.as_of is not None}


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Source(any_server, database, tmp_path, lake)


def test_a_resumed_table_equals_its_source_again(source):
    """After changes without row events, invalid text, and changes in between, also deletes."""
    source.round()
    before = {table: source.lake_rows(table) for table in TABLES}
    assert before == {table: source.source_rows(table) for table in TABLES}
    source.execute("UPDATE bad SET v = 'lost?' WHERE id = 1")
    source.execute("INSERT INTO bad VALUES (9, _cp1250 X'81')")
    as_statement(source.capture, "DELETE FROM list")
    source.execute("UPDATE good SET v = 'x' WHERE id = 1")
    cut = source.round()
    assert set(source.lagging(cut)) == {"bad", "list"}
    source.execute("DELETE FROM bad WHERE id IN (2, 9)")
    source.execute("INSERT INTO list VALUES (7, 'new')")
    source.execute("DELETE FROM good WHERE id = 3")
    cut = source.round()
    assert set(source.lagging(cut)) == {"bad", "list"}
    assert {table: source.lake_rows(table) for table in ("bad", "list")} == {t: before[t] for t in ("bad", "list")}
    assert source.lake_rows("good") == source.source_rows("good") == [(1, "x"), (2, "b")]
    for table in ("bad", "list"):
        requests.resume_table(source.capture.pipeline, f"{source.capture.database}.{table}", by="test")
    source.execute("INSERT INTO bad VALUES (4, 'd'), (5, 'e')")
    source.execute("INSERT INTO list VALUES (8, 'newer')")
    source.execute("UPDATE good SET v = 'y' WHERE id = 1")
    source.round()
    source.execute("UPDATE bad SET v = 'f' WHERE id = 5")
    source.execute("DELETE FROM list WHERE id = 7")
    cut = source.round()
    if cut is None or source.lagging(cut):
        cut = source.round()
    assert source.lagging(cut) == {}
    assert {table: source.lake_rows(table) for table in TABLES} == {t: source.source_rows(t) for t in TABLES}
    source.execute("INSERT INTO bad VALUES (6, 'g')")
    source.execute("INSERT INTO list VALUES (6, 'g')")
    source.round()
    assert {table: source.lake_rows(table) for table in TABLES} == {t: source.source_rows(t) for t in TABLES}


def test_a_truncated_table_is_empty_when_it_is_resumed(source):
    """Its snapshot has no rows, and removes the rows of the lake."""
    source.round()
    as_statement(source.capture, "DELETE FROM bad")
    cut = source.round()
    assert set(source.lagging(cut)) == {"bad"}
    assert len(source.lake_rows("bad")) == 3
    requests.resume_table(source.capture.pipeline, f"{source.capture.database}.bad", by="test")
    for _ in range(2):
        source.round()
    assert source.lake_rows("bad") == []
    source.execute("INSERT INTO bad VALUES (1, 'back')")
    source.round()
    assert source.lake_rows("bad") == [(1, "back")]
