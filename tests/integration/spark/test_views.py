"""Temporary views of tables that are merged in parallel."""

from __future__ import annotations

from spark_jobs.iceberg.temp_views import view_of
from spark_jobs.runtime.session import table_session


def test_persisted_data_stays_when_another_session_replaces_its_view(spark_lake):
    """Spark uses the view's name in all sessions: with one name for all, the persisted data would be dropped."""
    spark, config = spark_lake
    first, other = (table_session(spark, config) for _ in range(2))
    first.range(10).createOrReplaceTempView(view_of(first, "cdc_changes"))
    kept = first.sql(f"SELECT max(id) FROM {view_of(first, 'cdc_changes')}").persist()
    for rows in (5, 6):
        other.range(rows).createOrReplaceTempView(view_of(other, "cdc_changes"))
    assert kept.storageLevel.useMemory
    assert kept.collect() == [(9,)]
    kept.unpersist()
