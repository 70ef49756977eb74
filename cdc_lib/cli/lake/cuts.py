"""``cdc lake cuts``: the positions as of which the lake tables of a source are consistent."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find, open_store_pipeline
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.model.merge_plan import Cut
from cdc_lib.store.cuts import last_cuts


def cuts(
    context: typer.Context,
    source: SourceName,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many of the last cuts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the last cuts of a source: positions at which all its lake tables are consistent.

    JSON has the snapshot of each lake table, by which a query reads the tables as of the cut.

    Example:
        cdc lake cuts shop --limit 5
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    found = last_cuts(pipeline.store, source, limit)
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{source} has no cuts yet; its first merge publishes one")
        return
    table(("cut", "epoch", "position", "last commit", "published at", "tables"), map(_row, found))


def _row(cut: Cut) -> tuple[str, ...]:
    commit = f"{cut.event_time:%Y-%m-%d %H:%M:%S} UTC" if cut.event_time is not None else "none"
    at = f"{cut.at:%Y-%m-%d %H:%M:%S} UTC"
    return cut.merge_id, str(cut.epoch), str(cut.position), commit, at, str(len(cut.tables))
