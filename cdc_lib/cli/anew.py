"""``cdc snapshot``: a table of the lake read anew from its source."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, caller, config_of, find, open_pipeline
from cdc_lib.cli.output import say
from cdc_lib.model.results import Wanted


def snapshot(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help="Captured tables as database.table, with * and ? for several."),
    ],
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the record.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take the snapshot of captured tables again: afterwards their lake tables equal the source, whatever stood there."""
    pipeline = open_pipeline(config_of(find(context, source)))
    wanted = pipeline.wanted(tables)
    for one in wanted:
        say(_described(one))
    say("Until they are read, the lake of this source stands as it does; draining goes on.")
    if not yes and not typer.confirm(f"Read {len(wanted)} tables of {source} again?"):
        say("nothing was changed")
        return
    for record in pipeline.snapshot_anew([one.table for one in wanted], by=caller("snapshot"), why=why):
        say(f"{record.table} is read anew behind {record.until}; the next runs merge that")


def _described(one: Wanted) -> str:
    what = "rows" if one.keyed else "changes (it has no key: the list of its changes begins anew)"
    given_up = "; the snapshot that is going on is given up" if one.reading else ""
    return f"{one.table}: the {what} that the lake holds are replaced by the source's rows{given_up}"
