"""Temporary views of tables that are merged side by side."""

from __future__ import annotations

from spark_jobs.iceberg.temp_views import view_of
from spark_jobs.runtime.session import table_session


def test_what_a_session_keeps_stays_when_another_replaces_its_view(spark_lake):
    """Spark goes by the view's name in all sessions: with one name for all, what is kept would be gone."""
    spark, config = spark_lake
    one, other = (table_session(spark, config) for _ in range(2))
    one.range(10).createOrReplaceTempView(view_of(one, "cdc_changes"))
    kept = one.sql(f"SELECT max(id) FROM {view_of(one, 'cdc_changes')}").persist()
    for rows in (5, 6):
        other.range(rows).createOrReplaceTempView(view_of(other, "cdc_changes"))
    assert kept.storageLevel.useMemory
    assert kept.collect() == [(9,)]
    kept.unpersist()
