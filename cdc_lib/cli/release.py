"""``cdc release``: the way back for a table that was set aside."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, caller, config_of, find, open_pipeline
from cdc_lib.cli.output import say


def release(
    context: typer.Context,
    source: SourceName,
    table: Annotated[str, typer.Argument(help="The table, as database.table; cdc status lists those set aside.")],
) -> None:
    """Let a table that was set aside go on from here, with a new snapshot that the next run takes."""
    record = open_pipeline(config_of(find(context, source))).release(table, by=caller("release"))
    say(f"{table} is followed again from {record.until} on")
    if record.snapshot_id:
        say("the next runs read it whole and merge that; until then its lake table stands as it did")
    else:
        say("the source has no such table any more, or does not capture it: its lake table stays as it stands")
