"""Each engine reads each layout: the rows of Spark, the reading client, PyIceberg, DuckDB and Trino, compared exactly.

What an engine reads wrongly is asserted as it is. A version that behaves otherwise makes a test fail: then the matrix in
``docs/guides/table-layout.md`` is to be changed.
"""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from cdc_lib.lake.catalog import open_catalog, open_table
from cdc_lib.serve.app import make_app
from cdc_lib.serve.catalog import CutCatalog
from tests.harness.lake.duckdb_queries import arrow_tables, installed, versions
from tests.harness.lake.engine_tables import COLUMNS, CONDITIONS, compact, lay_out, merge_rounds, schemas
from tests.harness.lake.past import metadata_file
from tests.harness.lake.reading import assert_reads_as_spark, opened, spark_rows
from tests.harness.lake.trino import TrinoError, TrinoMissing, running
from tests.harness.store.rest_catalog import serving

POSITION_DELETES = "v2_merge_on_read"
ALL_ROWS = "true"


def exact(rows):
    """Return rows in one order, with the exact text of each value: 0.0 and -0.0 differ, and so do types."""
    return sorted(tuple(repr(row[name]) for name in COLUMNS) for row in rows)


def asked(tables):
    return [(name, where) for name in tables for where in (ALL_ROWS, *CONDITIONS)]


def by_spark(lake, tables):
    """Return the rows of each table and condition."""
    return {(name, where): exact(spark_rows(lake, tables[name].name, where)) for name, where in asked(tables)}


def by_pyiceberg(lake, tables):
    with ExitStack() as stack:
        loaded = {name: stack.enter_context(open_table(lake.config, one.name)) for name, one in tables.items()}
        scans = {
            (name, where): loaded[name].scan(**({"row_filter": CONDITIONS[where]} if where in CONDITIONS else {}))
            for name, where in asked(tables)
        }
        return {key: exact(scan.to_arrow().to_pylist()) for key, scan in scans.items()}


def by_duckdb(version, lake, tables):
    files = {name: metadata_file(lake, schema.name) for name, schema in tables.items()}
    columns = ", ".join(COLUMNS)
    queries = [f"SELECT {columns} FROM iceberg_scan('{files[name]}') WHERE {where}" for name, where in asked(tables)]
    found = arrow_tables(installed(version), queries, ["SET TimeZone = 'UTC'"])
    return {
        key: one if isinstance(one, str) else exact(one.to_pylist())
        for key, one in zip(asked(tables), found, strict=True)
    }


def by_trino(trino, lake, tables):
    found = {}
    for name, where in asked(tables):
        query = f'SELECT {", ".join(COLUMNS)} FROM lake."latest.{lake.database}".{name} WHERE {where}'
        try:
            found[name, where] = exact(trino.rows(query))
        except TrinoError as error:
            found[name, where] = str(error)
    return found


def differences(found, expected):
    """Return what is not as Spark reads it, by table and condition: rows that are missing, and rows too many; or an error."""
    return {
        key: found[key] if isinstance(found[key], str) else (set(rows) - set(found[key]), set(found[key]) - set(rows))
        for key, rows in expected.items()
        if found[key] != rows
    }


def known_of_duckdb(version, tables, replaced):
    """Return the known differences: 1.4.4 ignores position deletes if the query says IS NULL or IS NOT NULL.

    Args:
        version: of DuckDB.
        tables: that are read.
        replaced: rows that deletes of the tables delete.
    """
    if version != "1.4.4":
        return {}
    known = {}
    for name, where in asked(tables):
        column, _, condition = where.partition(" IS ")
        if condition and name.startswith(POSITION_DELETES):
            again = {*exact(row for row in replaced if (row[column] is None) == (condition == "NULL"))}
            known |= {(name, where): (set(), again)} if again else {}
    return known


@pytest.mark.parametrize("parts", [*("whole", "by_time", "by_text"), pytest.param("by_days", marks=pytest.mark.slow)])
def test_engines_read_the_rows_of_spark(lake, parts):
    """On both format versions and in both write modes, after merges, and after maintenance and one merge more."""
    lay_out(lake)
    tables = {name: schema for name, schema in schemas(lake.database).items() if name.endswith(parts)}
    for first, rounds in ((0, 3), (3, 1)):
        if first:
            compact(lake, tables)
        replaced = merge_rounds(lake, tables, first, rounds)
        expected = by_spark(lake, tables)
        assert len({str(rows) for (_, where), rows in expected.items() if where == ALL_ROWS}) == 1
        assert sum(bool(rows) for rows in expected.values()) > len(expected) * 3 / 4  # most conditions have rows
        with opened(lake) as reader:
            for schema in tables.values():
                assert_reads_as_spark(reader.table(schema.name), spark_rows(lake, schema.name), [1000, -1])
        assert differences(by_pyiceberg(lake, tables), expected) == {}
        for version in versions():
            found = differences(by_duckdb(version, lake, tables), expected)
            known = known_of_duckdb(version, tables, replaced)
            assert (found.keys() <= known.keys(), bool(found)) == (True, bool(known)), f"DuckDB {version}: {found}"
            # Of a file all of whose rows were replaced nothing is left to read.
            assert all(not missing and more <= known[key][1] for key, (missing, more) in found.items()), found


@pytest.mark.slow
def test_trino_reads_the_rows_of_spark_through_cdc_serve(lake, tmp_path):
    """All layouts, after merges, and after maintenance and one merge more."""
    lay_out(lake)
    tables = schemas(lake.database)
    with closing(open_catalog(lake.config)) as catalog:
        app = make_app({"shop": CutCatalog(lake.config, lake.store, catalog)}, "secret")
        with serving(app) as address:
            settings = {
                "iceberg.catalog.type": "rest",
                "iceberg.rest-catalog.uri": address,
                "iceberg.rest-catalog.warehouse": "shop",
                "iceberg.rest-catalog.nested-namespace-enabled": "true",
                "iceberg.rest-catalog.security": "OAUTH2",
                "iceberg.rest-catalog.oauth2.token": "secret",
            }
            try:
                with running(tmp_path / "trino", settings) as trino:
                    merge_rounds(lake, tables, first=0, rounds=3)
                    assert differences(by_trino(trino, lake, tables), by_spark(lake, tables)) == {}
                    compact(lake, tables)
                    merge_rounds(lake, tables, first=3, rounds=1)
                    assert differences(by_trino(trino, lake, tables), by_spark(lake, tables)) == {}
            except TrinoMissing as error:
                pytest.skip(f"Trino cannot run here: {error}")
