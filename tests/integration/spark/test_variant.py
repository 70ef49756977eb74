"""Why JSON columns are no ``variant``: Spark writes and merges it, and PyIceberg cannot load a table that has it."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import ValidationError
from pyspark.errors import AnalysisException

from cdc_lib.lake.catalog import open_catalog


def test_spark_merges_variants_and_pyiceberg_cannot_load_their_table(lake):
    """When PyIceberg can, the page of limits and this choice are to be thought over."""
    spark, namespace = lake.spark, f"{lake.config.lake.catalog}.{lake.database}"
    table = f"{namespace}.t"
    spark.sql(f"CREATE NAMESPACE {namespace}")
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE {table} (id INT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3', {modes})")
    rows = spark.range(4).selectExpr(
        "CAST(id AS INT) AS id", """parse_json('{"b": [1.10, null], "a": ' || id || '}') AS v"""
    )
    rows.coalesce(1).sortWithinPartitions("id").writeTo(table).append()
    spark.sql(f"MERGE INTO {table} AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark.sql(f"UPDATE {table} SET v = parse_json('[]') WHERE id = 2")
    found = [tuple(row) for row in spark.sql(f"SELECT id, to_json(v) FROM {table} ORDER BY id").collect()]
    assert found == [(0, '{"a":0,"b":[1.1,null]}'), (2, "[]"), (3, '{"a":3,"b":[1.1,null]}')]
    with pytest.raises(
        AnalysisException, match="does not support ordering on type"
    ):  # versions of a row are compared so
        spark.sql(f"SELECT v <=> v FROM {table}").collect()
    with pytest.raises(ValidationError, match="Unsupported field type: 'variant'"):
        open_catalog(lake.config).load_table((lake.database, "t"))
