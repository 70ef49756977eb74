"""Writes rows as data files of an Iceberg table, without a commit: the commit that adds them comes later, with others' deletes.

It is what Iceberg's own rewriting of files does: the table is registered under a random name, and a write to that name leaves its
files with a coordinator in the driver. A write that fails removes its files. Those of a job that fails later are removed by
maintenance as orphans.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from spark_jobs.iceberg.row_delta import each
from spark_jobs.runtime.java_classes import JavaClasses

PARQUET = "parquet"
FILE_FORMATS = ("write.format.default", "write.delete.format.default")
"""Table properties: the formats of new data and delete files, which somebody else may have set."""


def write_files(rows: DataFrame, table: Any, options: Mapping[str, str], classes: JavaClasses) -> list[Any]:
    """Write rows, and return their data files, Iceberg's Java objects.

    Args:
        rows: with the columns and types of the table.
        table: Iceberg's Java object.
        options: of the write.
        classes: cache of Iceberg's classes.
    """
    name = secrets.token_hex(16)
    tables = classes.static("org.apache.iceberg.spark.SparkTableCache", "get")()
    written = classes.static("org.apache.iceberg.spark.FileRewriteCoordinator", "get")()
    tables.add(name, table)
    try:
        rows.write.format("iceberg").options(**{"write-format": PARQUET}, **options).mode("append").save(name)
        return list(each(written.fetchNewFiles(table, name)))
    finally:
        tables.remove(name)
        written.clearRewrite(table, name)
