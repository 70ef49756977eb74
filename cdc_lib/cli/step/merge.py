"""``cdc step merge``: drained batches into the lake tables."""

from __future__ import annotations

import typer

from cdc_lib.cli import job
from cdc_lib.cli.context import SourceName, find


def merge(context: typer.Context, source: SourceName) -> None:
    """Merge what is drained into the lake tables, in Spark.

    Example:
        cdc step merge shop
    """
    loaded = find(context, source)
    job.run_job("merge", loaded)
