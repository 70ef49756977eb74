"""``cdc quarantine resume``: a quarantined table is followed again."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline


def resume(
    context: typer.Context,
    source: SourceName,
    table: Annotated[str, typer.Argument(help="The table, as database.table; cdc quarantine list names them.")],
) -> None:
    """Follow a quarantined table again from here, with a new snapshot that the next run takes.

    Example:
        cdc quarantine resume shop shop.orders
    """
    record = requests.resume_table(
        open_pipeline(config_of(find(context, source))), table, by=caller("quarantine resume")
    )
    say(f"{table} is followed again from {record.released_position} on")
    if record.snapshot_id:
        say("the next runs read it whole and merge that; until then its lake table is as it did")
    else:
        say("the source has no such table any more, or does not capture it: its lake table stays as it is")
