"""``cdc batches replay``: a part of the binlog drained again into another store."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.backfill.archive import period_of
from cdc_lib.backfill.replay import BatchReplay
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say, size
from cdc_lib.cli.pipelines import open_pipeline, open_store_pipeline
from cdc_lib.model.pace import counted
from cdc_lib.model.results import DrainResult
from cdc_lib.store.objects.open import open_at


def replay(
    context: typer.Context,
    source: SourceName,
    location: Annotated[
        str,
        typer.Option("--location", help="file:///folder, s3://, gs:// or abfss:// and a prefix, not the source's own."),
    ],
    since: Annotated[str | None, typer.Option("--since", help="Changes that committed then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Changes that committed before. Default: now.")] = None,
    from_archive: Annotated[
        bool, typer.Option("--from-archive", help="Read the stored raw events, not the server.")
    ] = False,
) -> None:
    """Drain a part of the binlog again into another store; the source's cursors and batches do not change.

    A replay that was interrupted continues where it was. cdc backfill --batches LOCATION merges what is there.

    Example:
        cdc batches replay shop --since 2026-11-20T00:00:00Z --location file:///data/again
    """
    config = config_of(find(context, source))
    period = period_of(since, until)
    pipeline = open_store_pipeline(config) if from_archive else open_pipeline(config)
    redraining = BatchReplay(pipeline, open_at(config.store, location))
    if from_archive:
        count = redraining.from_archive(period, report=_report)
        say(f"decoded from raw events into {location}: {counted(count, 'window')} of {period}")
    else:
        cursor = redraining.from_server(period, by=caller("batches replay"), report=_report)
        say(f"{location} has the binlog up to {cursor.position}")


def _report(result: DrainResult) -> None:
    say(f"{result.unit_id}: {counted(result.rows, 'row')}, {size(result.bytes)}")
