"""``cdc step ack``: moves a cursor over the work that is done in the store."""

from __future__ import annotations

import typer

from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline, open_store_pipeline
from cdc_lib.model.pace import listed
from cdc_lib.model.results import AckResult


def ack_drain(context: typer.Context, source: SourceName) -> None:
    """Move the drain cursor over the windows and chunks whose batches are durable.

    Example:
        cdc step ack drain shop
    """
    show_ack(open_pipeline(config_of(find(context, source))).ack_drain(by=caller("step ack drain")))


def ack_lake(context: typer.Context, source: SourceName) -> None:
    """Move the lake cursor to the cut that the last merge published.

    Example:
        cdc step ack lake shop
    """
    show_ack(open_store_pipeline(config_of(find(context, source))).ack_lake(by=caller("step ack lake")))


def show_ack(result: AckResult) -> None:
    """Print how far a cursor moved, and what was quarantined there."""
    say(ack_line(result))
    say_quarantined(result)


def ack_line(result: AckResult) -> str:
    """Return how far a cursor moved."""
    moved = f"{result.start} → {result.stop}" if result.start != result.stop else f"at {result.stop}"
    waiting = f", {result.waiting} still waiting" if result.waiting else ""
    over = listed((result.windows, "window"), (result.chunks, "chunk")) or "nothing new"
    return f"{result.consumer} cursor {moved}: {over}{waiting}"


def say_quarantined(result: AckResult) -> None:
    """Print the tables that were quarantined where a cursor moved, or are to be read again."""
    for one in result.quarantined:
        if one.fault is None:
            say(f"to be read again: {one.table}: {one.why}")
            continue
        say(
            f"quarantined: {one.table}, which is as of {one.as_of}: {one.fault.reason} [{one.fault.position}]",
            "yellow",
        )
