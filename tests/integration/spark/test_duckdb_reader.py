"""DuckDB's Iceberg reader returns the counts, sums and single rows that Spark returns, where its extension can be installed."""

from __future__ import annotations

import os

import pytest

from tests.harness.batches import BIGINT, TEXT, Row, table
from tests.harness.duckdb_queries import ExtensionMissing, installed, query
from tests.harness.past import metadata_file

ROUNDS, KEYS = 4, 2000


@pytest.fixture(scope="module")
def duckdb_folder():
    """The folder of the DuckDB of CDC_TEST_DUCKDB; None for the installed one, which downloads its extension."""
    try:
        folder = installed(os.environ.get("CDC_TEST_DUCKDB", ""))
        query(folder, [])
    except ExtensionMissing as error:
        pytest.skip(f"the Iceberg extension of DuckDB cannot be installed here: {error}")
    return folder


def merge_rounds(lake, schema):
    """Merge rounds of new keys, and updates and deletes over all keys before, so that data files overlap."""
    for number in range(ROUNDS):
        start = 100_000 * number + 4
        rows = [Row("c", start + 1, {"id": KEYS * number + i, "v": i, "t": f"new {i}"}, i) for i in range(KEYS)]
        changed = range(number, KEYS * number, 7)
        rows += [Row("d" if i % 5 == 0 else "u", start + 2, {"id": i, "v": -i, "t": f"{number}"}, i) for i in changed]
        lake.merge(lake.batches.plan(start + 100_000, lake.batches.window(start, start + 100_000, {schema: rows})))


def all_queries(table):
    """Queries of a table: all rows as counts and sums, ranges of keys, and single keys, of which some were deleted."""
    values = "COUNT(*), CAST(SUM(id) AS BIGINT), CAST(SUM(v) AS BIGINT), CAST(SUM(LENGTH(t)) AS BIGINT)"
    last = KEYS * ROUNDS
    return [
        f"SELECT {values} FROM {table}",
        f"SELECT {values} FROM {table} WHERE id BETWEEN {last // 3} AND {last // 2}",
        f"SELECT {values} FROM {table} WHERE v < 0",
        *(f"SELECT id, v, t FROM {table} WHERE id = {key}" for key in range(0, last + 100, 101)),
    ]


# `duckdb_folder` comes first: Spark is started only where DuckDB can read.
def test_duckdb_returns_the_counts_sums_and_single_rows_of_spark(duckdb_folder, request):
    """After merges whose updates and deletes are deletion vectors."""
    lake = request.getfixturevalue("lake")
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "v": BIGINT, "t": TEXT})
    merge_rounds(lake, schema)
    expected = [[list(row) for row in lake.spark.sql(one).collect()] for one in all_queries(lake.name(schema.name))]
    assert expected[0][0][0] < KEYS * ROUNDS  # some rows were deleted
    queries = all_queries(f"iceberg_scan('{metadata_file(lake, schema.name)}')")
    version, found = query(duckdb_folder, queries)
    wrong = [(one, have, want) for one, have, want in zip(queries, found, expected, strict=True) if have != want]
    assert wrong == [], (
        f"DuckDB {version} reads wrongly: name it in docs/operations/limits.md and docs/guides/reading.md"
    )
