"""Rows in Arrow as a frame of Spark, and back; executors need no Python for it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from spark_jobs.runtime.java_classes import java_classes

_SPARK_HAS_IT = hasattr(DataFrame, "toArrow")
"""Not Spark 3.5, whose pandas functions do the same inside."""

_PYTHON_UTILS = "org.apache.spark.sql.api.python.PythonSQLUtils"


def frame_of(session: SparkSession, rows: pa.Table, columns: str) -> DataFrame:
    """Return rows as a frame.

    Args:
        session: a Spark session.
        rows: in Arrow.
        columns: their names and types in Spark, as in CREATE TABLE.
    """
    if _SPARK_HAS_IT or not rows.num_rows:
        return session.createDataFrame(rows if _SPARK_HAS_IT else [], columns)
    schema, classes = session.createDataFrame([], columns).schema, java_classes(session)
    batches = rows.rename_columns(schema.names).cast(to_arrow_schema(schema)).to_batches(max_chunksize=10_000)
    made = session.sparkContext._serialize_to_jvm(  # noqa: SLF001 - as pyspark does with rows of pandas
        batches,
        ArrowStreamSerializer(),
        classes.static(_PYTHON_UTILS, "readArrowStreamFromFile"),
        classes.named("org.apache.spark.sql.api.python.ArrowIteratorServer"),
    )
    java = classes.static(_PYTHON_UTILS, "toDataFrame")(made, schema.json(), session._jsparkSession)  # noqa: SLF001
    return DataFrame(java, session)


def rows_of_frame(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame in Arrow."""
    if _SPARK_HAS_IT:
        return frame.toArrow()
    schema = to_arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001 - as above
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
