"""``cdc step merge``: drained batches into the lake tables."""

from __future__ import annotations

import typer

from cdc_lib.cli import job
from cdc_lib.cli.changed_rows import compare_changed_rows
from cdc_lib.cli.context import SourceName, config_of, find


def merge(context: typer.Context, source: SourceName) -> None:
    """Merge what is drained into the lake tables, in Spark.

    Then rows that it changed are compared with the source, as verify.after_merge in the source file says. A row that is wrong is
    printed; it is no failure of the merge.

    Example:
        cdc step merge shop
    """
    loaded = find(context, source)
    job.run_job("merge", loaded)
    compare_changed_rows(config_of(loaded))
