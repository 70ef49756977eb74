"""``cdc lake maintain``: keep lake tables small and quick to read."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli import job
from cdc_lib.cli.context import SourceName, find


def maintain(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="database.table. Default: all tables.")
    ] = None,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Remove deleted rows now: write each file again of which a row is deleted, and keep only the snapshots of the last cut and the last merge.",
        ),
    ] = False,
) -> None:
    """Rewrite small files, and files with many deleted rows, in key order; remove old snapshots and orphan files.

    Safe during merges. What is kept and rewritten is set under maintenance: in the source file.

    Example:
        cdc lake maintain shop
        cdc lake maintain shop shop.orders
        cdc lake maintain shop shop.customers --purge
    """
    loaded = find(context, source)
    job.run_job("maintain", loaded, *(f"--table={table}" for table in tables or ()), *(["--purge"] if purge else []))
