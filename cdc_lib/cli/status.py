"""``cdc status``: where the sources stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from cdc_lib.cli.context import AsJson, config_of, find, open_pipeline, settings
from cdc_lib.cli.output import (
    duration,
    error_as_plain,
    exit_code,
    plain,
    print_json,
    say,
    show_error,
    size,
    table,
)
from cdc_lib.config import Loaded, load_sources
from cdc_lib.errors import CdcError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.results import ConsumerState
from cdc_lib.pipeline import Status


def status(
    context: typer.Context,
    source: Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="One source; all without.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show where each source stands: cursors, head of the binlog, lag, what waits."""
    loaded = [find(context, source)] if source else load_sources(settings(context).sources)
    outcomes = [(one, _status_of(one)) for one in loaded]
    if as_json:
        print_json([_as_plain(one, outcome) for one, outcome in outcomes])
    else:
        _show(outcomes)
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, CdcError)]
    if errors:
        raise typer.Exit(max(exit_code(error) for error in errors))


def _status_of(loaded: Loaded) -> Status | CdcError:
    """One source that cannot be asked must not hide the others."""
    try:
        return open_pipeline(config_of(loaded)).status()
    except CdcError as error:
        return error


def _as_plain(loaded: Loaded, outcome: Status | CdcError) -> dict[str, Any]:
    if isinstance(outcome, CdcError):
        return {"source": loaded.source, "error": error_as_plain(outcome)}
    return {**plain(outcome), "error": None}


def _show(outcomes: Sequence[tuple[Loaded, Status | CdcError]]) -> None:
    if not outcomes:
        say("no sources")
        return
    columns = ("source", "drained to", "merged to", "head", "behind", "lag", "in flight", "tables", "last cut")
    table(columns, (_row(loaded, outcome) for loaded, outcome in outcomes))
    for _, outcome in outcomes:
        if isinstance(outcome, CdcError):
            show_error(outcome)
        else:
            say_who_holds(outcome.source, outcome.consumers)


def say_who_holds(source: str, consumers: Sequence[ConsumerState]) -> None:
    """Name the consumers for which batches stay that are old enough to be collected."""
    for one in consumers:
        if one.holding:
            since = f"{one.moved_at:%Y-%m-%d %H:%M:%S} UTC" if one.moved_at else "it was made"
            text = f"{source}: {one.holding} old batches stay for {one.name}, whose cursor has not moved since {since}"
            say(text, style="yellow")


def _row(loaded: Loaded, outcome: Status | CdcError) -> Sequence[str | Text]:
    if isinstance(outcome, CdcError):
        return (Text(loaded.source, style="red"), Text(type(outcome).__name__, style="red"), *[""] * 7)
    cut = outcome.last_cut
    return (
        outcome.source,
        _position(outcome.drain),
        _position(outcome.lake),
        str(outcome.head or "?"),
        size(outcome.pending_bytes),
        duration(outcome.lag_seconds),
        _in_flight(outcome.drain),
        str(len(cut.tables)) if cut else "0",
        f"{cut.at:%Y-%m-%d %H:%M:%S} UTC" if cut else "never",
    )


def _position(at: Cursor | None) -> str:
    return str(at.position) if at else "not started"


def _in_flight(at: Cursor | None) -> str:
    if at is None:
        return ""
    counts = ((len(at.in_flight), "windows"), (len(at.open_snapshots), "snapshots"))
    return ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing"
