"""``cdc backfill``: archived batches merged again, into the lake tables or into tables beside them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cdc_lib.backfilling import Backfilling, period_of
from cdc_lib.cli import spark
from cdc_lib.cli.context import SourceName, config_of, find, open_store_pipeline
from cdc_lib.cli.output import say
from cdc_lib.model.backfill import SIDE_SUFFIX, Found
from cdc_lib.store.layered import LayeredStore
from cdc_lib.store.open import open_at


def backfill(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Patterns of database.table; all without.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="Changes that committed then or later; all that are stored without.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Changes that committed before; now without.")] = None,
    into: Annotated[
        Literal["live", "side"], typer.Option("--into", help="The lake tables, or tables beside them.")
    ] = "live",
    side_suffix: Annotated[
        str, typer.Option("--side-suffix", help="Behind the names of the tables beside them.")
    ] = SIDE_SUFFIX,
    batches: Annotated[
        str | None,
        typer.Option("--batches", help="Where cdc redrain put batches, which count before the source's own."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be merged; nothing is.")] = False,
) -> None:
    """Merge batches that the store still holds once more: repairs lake tables, or builds tables beside them.

    The source is not asked, and no cursor moves. A table gets all changes behind --from up to where it stands, so that no row
    which was deleted since comes back; what it has already changes nothing.
    """
    loaded = find(context, source)
    config = config_of(loaded)
    period = period_of(since, until)
    if dry_run:
        pipeline = open_store_pipeline(config)
        store = LayeredStore(open_at(config.store, batches), pipeline.store) if batches else pipeline.store
        found = Backfilling(config, store, pipeline.cursors).told(period, list(tables or ()))
        _show(found)
        return
    times = [*(("--from", since) if since else ()), *(("--to", until) if until else ())]
    options = [*times, "--into", into, "--side-suffix", side_suffix]
    options += ["--batches", batches] if batches else []
    spark.run_job("spark_jobs.backfill", loaded.path, *options, "--", *(tables or ()))


def _show(found: Found) -> None:
    if not found.windows and not found.snapshots:
        say(f"nothing of {found.period} was ever merged")
        return
    say(f"{found.period}: {found.windows} windows and {found.snapshots} snapshots of tables")
    for table in found.tables:
        say(f"  {table}")
    say("nothing was merged; without --dry-run it is")
