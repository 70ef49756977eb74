"""A merge that was given up still runs when its retry is done and the next window is merged: it changes nothing any more."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cdc_lib.errors import MergeConflict
from cdc_lib.status.overview import status_of
from spark_jobs.iceberg import lake_table
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.iceberg.lake_table import IcebergTable
from spark_jobs.iceberg.row_delta import RowCommit
from spark_jobs.merging import run
from tests.harness.lake.ddl_source import Followed

POINTS = {
    "the drop of a column": (IcebergTable, "drop"),
    "the first look at the table": (IcebergTable, "load"),
    "the creation of the table": (IcebergTable, "create"),
    "a new or wider column": (IcebergTable, "evolve"),
    "the renaming": (IcebergTable, "rename"),
    "another key": (IcebergTable, "rekey"),
    "the beginning of another definition": (IcebergTable, "begin_again"),
    "another definition": (lake_table, "redefined"),
    "the commit of another definition": (lake_table, "publish_beginning"),
    "the rows": (ArrowRows, "apply"),
    "the commit of the rows": (RowCommit, "publish"),
    "the comments": (IcebergTable, "comment"),
    "the cut": (run, "publish_cut"),
}
KEYED = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT)",
    "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30)",
)
CASES = {
    "a dropped column comes back": (
        KEYED,
        ("ALTER TABLE t DROP COLUMN a", "UPDATE t SET b = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2"),
        ("ALTER TABLE t ADD COLUMN a INT DEFAULT 4", "INSERT INTO t (id, a, b) VALUES (7, 7, 70)"),
    ),
    "a new column is dropped": (
        KEYED,
        ("ALTER TABLE t ADD COLUMN e INT NOT NULL DEFAULT 3", "UPDATE t SET b = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2"),
        ("ALTER TABLE t DROP COLUMN e", "INSERT INTO t (id, a, b) VALUES (7, 7, 70)"),
    ),
    "a former name is that of another column": (
        KEYED,
        ("ALTER TABLE t CHANGE a c INT NOT NULL", "UPDATE t SET c = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2"),
        ("ALTER TABLE t CHANGE c d INT, ADD COLUMN a VARCHAR(9) DEFAULT 'x'", "INSERT INTO t (id, d, b, a) VALUES (7, 7, 7, '7')"),
    ),
    "names are exchanged, and back": (
        KEYED,
        ("ALTER TABLE t CHANGE a b INT, CHANGE b a INT", "UPDATE t SET a = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2"),
        ("ALTER TABLE t CHANGE a b INT, CHANGE b a INT", "INSERT INTO t (id, a, b) VALUES (7, 7, 70)"),
    ),
    "another key, and the former one": (
        KEYED,
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "UPDATE t SET a = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id)", "INSERT INTO t (id, a, b) VALUES (7, 7, 70)"),
    ),
    "wider, and wider again": (
        KEYED,
        ("ALTER TABLE t MODIFY a BIGINT, ADD COLUMN e INT NOT NULL DEFAULT 3", "UPDATE t SET b = 5 WHERE id = 1"),
        ("ALTER TABLE t MODIFY a DECIMAL(20, 2), DROP COLUMN e", "INSERT INTO t (id, a, b) VALUES (7, 7, 70)"),
    ),
    "another table, and another one": (
        KEYED,
        ("DROP TABLE t", "CREATE TABLE t (id VARCHAR(9) PRIMARY KEY, a DATE)", "INSERT INTO t VALUES ('a', '2024-01-01'), ('b', NULL)"),
        ("DROP TABLE t", "CREATE TABLE t (id INT, a INT)", "INSERT INTO t VALUES (1, 1), (2, 2)"),
    ),
    "another table, which changes": (
        KEYED,
        ("DROP TABLE t", "CREATE TABLE t (id VARCHAR(9) PRIMARY KEY, a DATE)", "INSERT INTO t VALUES ('a', '2024-01-01'), ('b', NULL)"),
        ("DELETE FROM t WHERE id = 'a'", "ALTER TABLE t ADD COLUMN z INT DEFAULT 5", "INSERT INTO t VALUES ('c', NULL, 2)"),
    ),
    "rows are removed by a statement": (
        KEYED,
        ("TRUNCATE TABLE t", "INSERT INTO t VALUES (1, 1, 11)"),
        ("DELETE FROM t", "INSERT INTO t VALUES (3, 3, 33)"),
    ),
    "a first table, and another one": (
        (),
        ("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 1)"),
        ("DROP TABLE t", "CREATE TABLE t (id INT, a VARCHAR(9))", "INSERT INTO t VALUES (3, 3)"),
    ),
}  # fmt: skip
"""What the source has, what the window of the abandoned merge brings, and what the next one brings."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("case", CASES)
def test_a_merge_that_was_given_up_changes_nothing_any_more(
    any_server, database, tmp_path, lake, monkeypatch, case, point, when
):
    """At a point of it, or never if it does not come there, its retry and the merge of the next window run to their ends."""
    source = Followed(
        any_server, database, tmp_path, lake, on_error="quarantine", schema_changes={"drop_column": "follow"}
    )
    first, window, following = CASES[case]
    source.run("CREATE TABLE other (id INT PRIMARY KEY)", *first)
    source.round()
    source.round()
    source.run(*window, "INSERT INTO other VALUES (1)")
    source.drain()
    owner, name = POINTS[point]
    real, passed = getattr(owner, name), []

    def others_merge():
        if not passed:
            passed.append(point)
            source.merge()
            source.run(*following)
            source.round()

    def around(*arguments, **named):
        if when == "before":
            others_merge()
        result = real(*arguments, **named)
        others_merge()
        return result

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, around)
        with suppress(MergeConflict):
            source.merge()
    others_merge()
    source.round()
    source.run("INSERT INTO other VALUES (2)")
    source.round()
    source.assert_equal("t", "other")
    columns = {one.name for one in source.lake.state(f"{database}.t").columns if not one.name.startswith("_")}
    assert columns == set(source.columns("t"))
    assert not status_of(source.capture.pipeline).drain.quarantined_tables
