"""DuckDB's reader of Iceberg returns the same rows as Spark, where its extension can be installed."""

from __future__ import annotations

import duckdb
import pytest


@pytest.fixture
def reader():
    """DuckDB with its Iceberg extension, which it downloads."""
    with duckdb.connect() as connection:
        try:
            connection.execute("INSTALL iceberg")
            connection.execute("LOAD iceberg")
        except duckdb.Error as error:
            pytest.skip(
                f"DuckDB {duckdb.__version__} cannot have its Iceberg extension here: {str(error).splitlines()[0]}"
            )
        yield connection


@pytest.mark.integration
def test_duckdb_reads_deletion_vectors_as_spark_does(reader, request):
    """Rows of a table of format version 3 whose deletes are deletion vectors."""
    spark, config = request.getfixturevalue("spark_lake")  # Spark is started only where DuckDB can read
    table = f"{config.lake.catalog}.duck.read_back"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {config.lake.catalog}.duck")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {table} SELECT id, id * 7 FROM range(10000)")
    spark.sql(f"DELETE FROM {table} WHERE id % 3 = 0")
    expected = tuple(spark.sql(f"SELECT COUNT(*), SUM(v) FROM {table}").collect()[0])
    (file,) = spark.sql(f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1").collect()[0]
    result = reader.execute(f"SELECT COUNT(*), SUM(v) FROM iceberg_scan('{file}')").fetchone()
    assert result == expected, f"DuckDB {duckdb.__version__} reads it wrongly: name it in docs/operations/limits.md"
