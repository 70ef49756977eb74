"""``cdc cursor show``: the cursors of a source, and how they moved."""

from __future__ import annotations

import typer

from cdc_lib.cli.context import AsJson, ConsumerName, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.subscription import Interest
from cdc_lib.store import layout


def show(context: typer.Context, source: SourceName, consumer: ConsumerName = None, as_json: AsJson = False) -> None:
    """Show the cursors of a source, what is in flight, and their last moves.

    Example:
        cdc cursor show shop
        cdc cursor show shop drain --json
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    names = [name for name in pipeline.cursors.consumers(source) if consumer in (None, name)]
    cursors = [pipeline.cursor(name) for name in names]
    found = [one for one in cursors if one is not None]
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{source} has no cursors yet; its first plan makes {DRAIN} and {LAKE}")
    for one in found:
        _show_cursor(one)
        for info in pipeline.store.list(layout.replaced_cursors_prefix(source, one.consumer)):
            say(f"  replaced at {info.modified:%Y-%m-%d %H:%M:%S} UTC: {info.key}")


def _show_cursor(one: Cursor) -> None:
    say(f"{one.consumer}: {one.position} in epoch {one.epoch} of {one.identity}", style="bold")
    say(f"  generation {one.generation}, last event {one.event_time or 'none'}, GTIDs {one.gtid_set or 'none'}")
    for window in one.in_flight:
        say(f"  in flight: {window.id}")
    if one.lease is not None:
        say(f"  held by {one.lease.holder} until {one.lease.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if one.interest is not None:
        say(f"  wants {_patterns(one.interest)}")
    for task in one.snapshots:
        state = "complete" if task.complete else task.progress
        state = "cancelled" if task.cancelled else state
        say(f"  snapshot of {task.title}: {state}")
    for record in one.quarantine:
        until = (
            f"up to {record.released_position}, released by {record.released_by}"
            if record.released_position
            else "still"
        )
        what = "quarantined" if record.fault is not None else "to be read again"
        say(f"  {record.table} {what} from {record.start} on, {until}")
    for held in (*one.catching_up, *one.held):
        say(f"  {held.table} waits for its snapshot from {held.position} in epoch {held.epoch} on")
    for epoch_change in one.epoch_changes:
        say(
            f"  epoch {epoch_change.epoch} since {epoch_change.at:%Y-%m-%d %H:%M:%S} UTC ({epoch_change.kind} by {epoch_change.by}): {epoch_change.why}"
        )
        say(
            f"    from {epoch_change.previous_end.position} of {epoch_change.previous_end.identity} to {epoch_change.new_start.position} of {epoch_change.new_start.identity}"
        )
    if one.moves:
        table(
            ("moved at", "how", "from", "to", "by", "why"),
            (
                (f"{move.at:%Y-%m-%d %H:%M:%S}", move.kind, str(move.start or ""), str(move.stop), move.by, move.why)
                for move in one.moves[-10:]
            ),
        )


def _patterns(interest: Interest) -> str:
    tables = ", ".join(interest.tables) or "all tables"
    exclude = f" but {', '.join(interest.exclude)}" if interest.exclude else ""
    return f"{tables}{exclude}; columns: {', '.join(interest.columns) or 'all'}"
