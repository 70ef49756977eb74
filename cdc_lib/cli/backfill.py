"""``cdc backfill``: archived batches merged again, into the lake tables or into tables beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from cdc_lib.backfill.archive import BackfillArchive, period_of
from cdc_lib.backfill.other_key import left_out_line
from cdc_lib.backfill.preview import preview
from cdc_lib.cli import job
from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.errors import ConfigError
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillPreview, BackfillRequest
from cdc_lib.model.pace import listed
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.objects.open import open_at


def backfill(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="Patterns of database.table. Default: all tables.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Changes that committed then or later. Default: all that are stored.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Changes that committed before. Default: now.")] = None,
    into: Annotated[
        Literal["live", "copy"], typer.Option("--into", help="live: the lake tables; copy: new tables with a suffix.")
    ] = "live",
    copy_suffix: Annotated[
        str, typer.Option("--copy-suffix", help="Suffix of the names of these new tables.")
    ] = COPY_SUFFIX,
    batches: Annotated[
        str | None,
        typer.Option("--batches", help="Where cdc batches replay wrote batches; they replace the source's own."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be merged.")] = False,
    as_json: AsJson = False,
) -> None:
    """Merge stored batches again, in place or into other tables.

    The source is not read, and no cursor moves. A table gets all changes from --since up to its current position, so that rows
    which were deleted since do not come back. Changes that it already has change nothing.

    Example:
        cdc backfill shop --since 2026-11-20T00:00:00Z --until 2026-11-21T00:00:00Z --dry-run
        cdc backfill shop 'shop.*' --since 2026-11-20T00:00:00Z --into copy
    """
    loaded = find(context, source)
    config = config_of(loaded)
    period = period_of(since, until)
    if dry_run:
        pipeline = open_store_pipeline(config)
        if batches:
            pipeline = replace(pipeline, store=LayeredStore(open_at(config.store, batches), pipeline.store))
        request = BackfillRequest(period, tuple(tables or ()), into, copy_suffix, batches or "")
        found = preview(BackfillArchive(pipeline), request)
        if as_json:
            print_json(found)
        else:
            _show(found)
        return
    if as_json:
        raise ConfigError("--json is for --dry-run", hint="The job prints its progress as text.")
    times = [*(("--since", since) if since else ()), *(("--until", until) if until else ())]
    options = [*times, "--into", into, "--copy-suffix", copy_suffix]
    options += ["--batches", batches] if batches else []
    job.run_job("backfill", loaded, *options, "--", *(tables or ()))


def _show(found: BackfillPreview) -> None:
    if not found.windows and not found.snapshots:
        say(f"nothing of {found.period} was ever merged")
        return
    say(f"{found.period}: {listed((found.windows, 'window'), (found.snapshots, 'snapshot'))}")
    for table in found.tables:
        say(f"  {table}")
    for one in found.left_out:
        say(left_out_line(one))
    for refused in found.refused:
        say(f"{refused.table}: would be refused: {refused.message}. {refused.hint}", style="yellow")
    say("nothing was merged; without --dry-run it is")
