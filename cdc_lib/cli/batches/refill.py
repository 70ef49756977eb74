"""``cdc batches refill``: batches that are missing between the lake and the drain cursor."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.backfill.refill import BatchRefill
from cdc_lib.backfill.refill_window import RefilledWindow
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import agreed, say, size
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.model.pace import counted


def refill(
    context: typer.Context,
    source: SourceName,
    over: Annotated[
        bool,
        typer.Option(
            "--over", help="Continue after them, with new snapshots of all tables, because the server lost them."
        ),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the lake cursor's move.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Write acknowledged batches again that are missing or damaged, in place, so that the lake can continue.

    The server is asked first. A window that it no longer has is decoded from its raw events, with raw_archive: true.

    Example:
        cdc batches refill shop
        cdc batches refill shop --over --why "the server purged it"
    """
    pipeline = open_pipeline(config_of(find(context, source)))
    refilling = BatchRefill(pipeline)
    found = refilling.missing()
    for one in found:
        say(f"{one.window.id}: {f'{one.lost} is missing or damaged' if one.lost else 'its batch is missing'}")
    if not found:
        say(f"no batch is missing between the cursors of {source}")
        return
    if not over:
        done: list[RefilledWindow] = []
        refilling.refill(report=lambda one: done.append(_shown(one)))
        archived = sum(one.from_archive for one in done)
        say(
            f"batches written again for {counted(len(done), 'window')}: {len(done) - archived} from the server, {archived} from the raw archive; "
            "the next merge continues"
        )
        return
    if not agreed(f"Continue after them, and read every table of {source} again?", yes=yes):
        return
    move = refilling.go_over(by=caller("batches refill"), why=why or "batches were lost")
    say(f"the lake cursor went from {move.start} to {move.stop}; the next runs read every table again")


def _shown(one: RefilledWindow) -> RefilledWindow:
    result, origin = one.result, "the raw archive" if one.from_archive else "the server"
    say(f"{result.unit_id}: {counted(result.rows, 'row')}, {size(result.bytes)}, from {origin}")
    return one
