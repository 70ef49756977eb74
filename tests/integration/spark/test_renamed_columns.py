"""Renamed columns: the lake's columns follow, for rows from before and after the statement."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import MergeConflict
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.ports import MergeChanges
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.batches import BIGINT, INT, Row, table
from tests.harness.lake.ddl_source import Followed


@pytest.fixture(params=["FULL", "MINIMAL"])
def metadata(request):
    return request.param


@pytest.fixture
def source(metadata, any_server, database, tmp_path, lake):
    with row_metadata(any_server, metadata):
        modes = [{"tables": f"{database}.{mode}", "mode": mode} for mode in ("soft_delete", "append", "scd2")]
        source = Followed(any_server, database, tmp_path, lake, modes=modes)
        for name in ("t", "soft_delete", "append", "scd2"):
            source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20))")
            source.run(f"INSERT INTO {name} VALUES (1, 'a1', 'b1'), (2, 'a2', 'b2'), (3, 'a3', 'b3')")
        source.round()
        yield source


def test_the_lakes_columns_follow_in_every_mode(source):
    """Changes before and after a rename, exchanged names, a new snapshot, a renamed key column, and repeated merges."""
    before = source.snapshots()
    for name in ("t", "soft_delete", "append", "scd2"):
        source.run(
            f"UPDATE {name} SET a = 'before' WHERE id = 1",
            # An append table takes no partial images.
            f"SET SESSION binlog_row_image = '{'FULL' if name == 'append' else 'MINIMAL'}'",
            f"UPDATE {name} SET b = 'partly' WHERE id = 2",
            "SET SESSION binlog_row_image = 'FULL'",
            f"ALTER TABLE {name} RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            f"UPDATE {name} SET a = 'was b' WHERE id = 1",
            f"INSERT INTO {name} (id, a, b) VALUES (4, 'b4', 'a4')",
            f"ALTER TABLE {name} CHANGE a c VARCHAR(30), ADD COLUMN a INT NOT NULL DEFAULT 7",
            f"INSERT INTO {name} (id, a, b, c) VALUES (5, 5, 'a5', 'b5')",
            f"DELETE FROM {name} WHERE id = 3",
        )
    source.round(twice=True)
    source.assert_equal("t")
    rows = [(1, 7, "before", "was b"), (2, 7, "a2", "partly"), (4, 7, "a4", "b4"), (5, 5, "a5", "b5")]
    names = ("id", "a", "b", "c")
    database = source.capture.database
    assert source.lake_rows("t", *names) == rows
    assert source.lake_rows("soft_delete", *names, "_is_deleted") == [
        *((*row, False) for row in rows[:2]), (3, 7, "a3", "b3", True), *((*row, False) for row in rows[2:]),
    ]  # fmt: skip
    versions = source.lake_rows("scd2", *names, "_op", "_is_current")
    assert [row[:4] for row in versions if row[5]] == rows
    assert {(1, 7, "a1", "b1"), (1, 7, "before", "b1")} < {row[:4] for row in versions if not row[5]}
    changes = source.lake_rows("append", "id", "b", "c", "_op")
    assert {(1, "before", "b1", "u"), (1, "before", "was b", "u"), (4, "a4", "b4", "c")} < set(changes)
    source.run("ALTER TABLE t RENAME COLUMN id TO number", "UPDATE t SET c = 'late' WHERE number = 2")
    source.round(twice=True)
    source.assert_equal("t")
    assert source.lake.state(f"{database}.t").primary_key == ("number",)
    assert source.snapshots() == before


@pytest.mark.parametrize("metadata", ["FULL"])  # with MINIMAL the schema history does not go back over statements
def test_columns_of_the_key_take_the_names_of_others(source):
    """Of a column that the same statement drops, which the lake keeps under another name, and of one another."""
    source.run(
        "CREATE TABLE pair (x INT, y INT, v INT, PRIMARY KEY (x, y))", "INSERT INTO pair VALUES (1, 2, 3), (2, 2, 4)"
    )
    source.round()
    before = source.snapshots()
    source.run(
        "ALTER TABLE t DROP COLUMN a, RENAME COLUMN id TO a",
        "UPDATE t SET b = 'new' WHERE a = 2",
        "DELETE FROM t WHERE a = 3",
        "ALTER TABLE pair RENAME COLUMN x TO y, RENAME COLUMN y TO x",
        "UPDATE pair SET v = 5 WHERE y = 1",
    )
    source.round(twice=True)
    source.assert_equal("t", "pair")
    source.run("INSERT INTO t VALUES (7, 'last')", "DELETE FROM pair WHERE y = 2")
    source.round()
    source.assert_equal("t", "pair")
    assert source.snapshots() == before


def test_repeated_renames_are_applied_once(source):
    """Earlier windows, read again in a new epoch, are merged into the renamed columns."""
    begin = source.capture.head()
    source.run(
        "UPDATE t SET a = 'before' WHERE id = 1",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "UPDATE t SET a = 'was b' WHERE id = 2",
    )
    source.round()
    # As a tool changes a type without a lock: the lake keeps the dropped column under another name.
    source.run(
        "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 1",
        "UPDATE t SET n = id * 10",
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t RENAME COLUMN n TO b",
        "INSERT INTO t (id, a, b) VALUES (4, 'new', 40)",
    )
    source.round(twice=True)
    source.assert_equal("t")
    names = [column.name for column in source.lake.state(f"{source.capture.database}.t").columns[:4]]
    assert names == ["id", "b_old", "a", "b"]
    requests.rewind(source.capture.pipeline, StartAt(position=str(begin)), by="test", why="to read it again")
    source.run("UPDATE t SET b = 7 WHERE id = 4")
    snapshots = source.snapshots()
    source.round(twice=True)
    source.assert_equal("t")
    assert (source.snapshots(), source.capture.pipeline.plan(by="test")) == (snapshots, [])
    assert [column.name for column in source.lake.state(f"{source.capture.database}.t").columns[:4]] == names


def no_changes(lake):
    fields = (pa.field("_op", pa.string()), *lake.fields, pa.field("_absent", pa.string()))
    yield pa.schema(fields).empty_table()


def test_rows_computed_before_columns_exchanged_their_names_are_not_published(lake):
    """By a merge that was abandoned but still runs: another merge has renamed the columns."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "a": INT, "b": INT})
    lake.merge(lake.batches.plan(104, lake.batches.window(4, 104, {schema: [Row("c", 5, {"id": 1, "a": 1, "b": 2})]})))
    late = lake.target(schema.name)
    state = late.load()
    swap = ColumnRename(schema.name, Point(1, 1, 110), (("a", "b"), ("b", "a")), "", 1)
    other = lake.target(schema.name)
    assert [column.name for column in other.rename(state, {"a": "b", "b": "a"}, [swap]).columns[:3]] == [
        "id",
        "b",
        "a",
    ]
    assert other.load().renames == (swap,)
    with pytest.raises(MergeConflict, match="renamed meanwhile"):
        late.apply(MergeChanges(no_changes), TableCommit({schema.name: state.marker}))
    assert lake.rows(schema.name, "id", "a", "b") == [(1, 2, 1)]
    with pytest.raises(MergeConflict, match="renamed meanwhile"):
        late.rename(state, {"a": "b", "b": "a"}, [swap])
    assert lake.rows(schema.name, "id", "a", "b") == [(1, 2, 1)]
