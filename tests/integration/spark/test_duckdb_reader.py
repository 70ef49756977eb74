"""DuckDB's Iceberg reader returns the counts, sums and single rows that Spark returns, or the wrong ones that the documents name."""

from __future__ import annotations

from spark_jobs.iceberg.ddl import SETTINGS
from tests.harness.lake.duckdb_queries import installed, query, versions
from tests.harness.lake.past import local_path

WRONG = {"1.5.5"}
"""Versions that apply the deletion vector of one data file to another, unless their cache is off."""
CACHE_OFF = "SET enable_external_file_cache = false"

ROWS, DELETED, ATTEMPTS = 10_000, 900, 12
"""Rows of each of two data files; those that are deleted of the first one, and one of the second; how many tables are made."""


def make_table(lake):
    """Make a table in which one commit deletes many rows of one file and one row of another; returns its name.

    Both deletion vectors are in one Puffin file. Their order there is by chance: the large one has to be the first.
    """
    namespace = f"{lake.config.lake.catalog}.{lake.database}"
    modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
    # One task deletes, as in tables of many files: a Puffin file has what a task deleted.
    settings = {**SETTINGS, **modes, "format-version": "3", "write.delete.distribution-mode": "hash"}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    lake.spark.sql(f"CREATE NAMESPACE {namespace}")
    for number in range(ATTEMPTS):
        name = f"{namespace}.orders_{number}"
        lake.spark.sql(
            f"CREATE TABLE {name} (id BIGINT, v BIGINT, t STRING) USING iceberg TBLPROPERTIES ({properties})"
        )
        for first in (0, ROWS):
            rows = lake.spark.range(first, first + ROWS, 1, 1)
            rows.selectExpr("id", "id * 7 % 1000 AS v", "concat('text ', id) AS t").writeTo(name).append()
        lake.spark.sql(f"DELETE FROM {name} WHERE id < {2 * DELETED} AND id % 2 = 0 OR id = {ROWS + 7}")
        vectors = lake.spark.sql(
            f"SELECT file_path, record_count FROM {name}.delete_files ORDER BY content_offset"
        ).collect()
        assert len({one.file_path for one in vectors}) == 1
        if [one.record_count for one in vectors] == [DELETED, 1]:
            return name
    raise AssertionError("no table has the large deletion vector first")


def all_queries(table):
    """Queries of a table: all rows as counts and sums, ranges of keys, and single keys, of which some were deleted."""
    values = "COUNT(*), CAST(SUM(id) AS BIGINT), CAST(SUM(v) AS BIGINT), CAST(SUM(LENGTH(t)) AS BIGINT)"
    last = 2 * ROWS
    return [
        f"SELECT {values} FROM {table}",
        f"SELECT {values} FROM {table} WHERE id BETWEEN {last // 3} AND {last // 2}",
        f"SELECT {values} FROM {table} WHERE v < 500",
        *(f"SELECT id, v, t FROM {table} WHERE id = {key}" for key in range(7, last + 100, 501)),
    ]


def test_duckdb_returns_the_counts_sums_and_single_rows_of_spark(lake):
    """With a large deletion vector and a small one in one Puffin file."""
    name = make_table(lake)
    expected = [[list(row) for row in lake.spark.sql(one).collect()] for one in all_queries(name)]
    log = lake.spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    queries = all_queries(f"iceberg_scan('{local_path(log.first().file)}')")
    wrong = {}
    for version in versions():
        for setup in ((), (CACHE_OFF,)):
            named, found = query(installed(version), queries, setup)
            wrong[named, setup] = found != expected
    assert wrong == {(version, setup): version in WRONG and not setup for version, setup in wrong}, (
        "name what changed in docs/operations/limits.md and docs/guides/table-layout.md"
    )
