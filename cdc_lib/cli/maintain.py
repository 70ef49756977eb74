"""``cdc maintain``: keep lake tables small and quick to read."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli import spark
from cdc_lib.cli.context import SourceName, config_of, find


def maintain(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[list[str] | None, typer.Argument(metavar="TABLE...", help="database.table; all without.")] = None,
) -> None:
    """Write small files, and those with many deleted rows, anew in key order; remove old snapshots and lost files.

    Safe beside merges. What is kept and rewritten stands under maintenance: in the source file.
    """
    loaded = find(context, source)
    config_of(loaded)
    spark.run_job("spark_jobs.maintain", loaded.path, *(part for table in tables or () for part in ("--table", table)))
