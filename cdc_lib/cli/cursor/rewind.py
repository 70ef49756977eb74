"""``cdc cursor rewind``: let the drain continue at another place in the binlog."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.cursor.locate import At, Gtid, Time, show_located, start_of
from cdc_lib.cli.output import agreed, say
from cdc_lib.cli.pipelines import open_pipeline


def rewind(
    context: typer.Context,
    source: SourceName,
    time: Time = None,
    gtid: Gtid = None,
    at: At = None,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the position before the last move.")] = False,
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the move.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Move the drain cursor to a time, a set of GTIDs or a position; asks first, and records where it was.

    Example:
        cdc cursor rewind shop --time 2026-11-21T06:00:00Z --why "drained with a wrong mask"
        cdc cursor rewind shop --undo
    """
    pipeline = open_pipeline(config_of(find(context, source)))
    start = None if undo and (time, gtid, at) == (None, None, None) else start_of(time, gtid, at)
    if start is not None:
        found = requests.locate(pipeline, start)
        show_located(found)
        if found.is_after_cursor:
            again = f"cdc snapshot {source} '*.*'"
            say(f"The changes in between are left out. {again} reads the tables again.", style="bold yellow")
    if not agreed(f"Move the drain cursor of {source}?", yes=yes):
        return
    moved = requests.rewind(pipeline, start, by=caller("cursor rewind"), why=why)
    say(f"drain cursor at {moved.position} in epoch {moved.epoch}; cdc cursor rewind {source} --undo takes it back")
