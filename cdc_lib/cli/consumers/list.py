"""``cdc consumers list``: who reads the batches of a source, and how far they are."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import duration, print_json, say, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.consumers.states import states
from cdc_lib.model.pace import counted
from cdc_lib.model.results import ConsumerState
from cdc_lib.store.windows import stored_windows


def list_consumers(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the consumers of a source's batches, the lake included.

    Example:
        cdc consumers list shop
    """
    config = config_of(find(context, source))
    pipeline = open_store_pipeline(config)
    windows = stored_windows(pipeline.store, source)
    found = list(states(windows, pipeline.cursors, source, config.store.keep_batches_for))
    if as_json:
        print_json(found)
        return
    columns = ("consumer", "acknowledged to", "pending batches", "lag", "held by", "moved at")
    rows = (
        (
            one.name, str(one.position), str(one.pending_windows), duration(one.lag_seconds), one.holder or "none",
            f"{one.moved_at:%Y-%m-%d %H:%M:%S}" if one.moved_at else "",
        )
        for one in found
    )  # fmt: skip
    table(columns, rows)
    say_who_holds(source, found)


def say_who_holds(source: str, consumers: Sequence[ConsumerState]) -> None:
    """Print the consumers that hold back old batches."""
    for one in consumers:
        if one.holding:
            since = f"{one.moved_at:%Y-%m-%d %H:%M:%S} UTC" if one.moved_at else "it was made"
            text = f"{source}: kept for {one.name}: {counted(one.holding, 'old batch')}; its cursor has not moved since {since}"
            say(text, style="yellow")
