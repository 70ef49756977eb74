"""``cdc step merge``: drained batches into the lake tables."""

from __future__ import annotations

import typer

from cdc_lib.cli import spark
from cdc_lib.cli.context import SourceName, config_of, find


def merge(context: typer.Context, source: SourceName) -> None:
    """Merge what is drained into the lake tables, in Spark.

    Example:
        cdc step merge shop
    """
    loaded = find(context, source)
    config_of(loaded)
    spark.run_job("spark_jobs.merge", loaded.path)
