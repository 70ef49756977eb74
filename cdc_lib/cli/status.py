"""``cdc status`` and ``cdc cursor show``: where the sources stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from cdc_lib.cli.context import AsJson, SourceName, config_of, find, open_pipeline, open_store_pipeline, settings
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
from cdc_lib.model.aside import Standing
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.results import ConsumerState
from cdc_lib.model.subscription import Interest
from cdc_lib.model.verify import Verified
from cdc_lib.parts import unmerged
from cdc_lib.pipeline import Status
from cdc_lib.quarantine import way_back
from cdc_lib.store import layout

cursor = typer.Typer(no_args_is_help=True, help="The cursors of a source.")

ConsumerName = Annotated[str | None, typer.Argument(metavar="[CONSUMER]", help="drain, lake or another; all without.")]
"""The second argument of the commands about cursors."""


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
            if outcome.runway_warning:
                say(f"{outcome.source}: {outcome.runway_warning}", style="yellow")
            say_who_holds(outcome.source, outcome.consumers)
            for one in outcome.aside:
                _show_aside(outcome.source, one)
            say_parts(outcome)
            say_dropped(outcome)
            say_switch(outcome)
            say_verified(outcome.source, outcome.verified)


def say_parts(outcome: Status) -> None:
    """Tell which parts of tables are read again, who asked for them, and how far that is."""
    for task in unmerged(outcome.drain, outcome.lake) if outcome.drain is not None else ():
        if task.part is not None:
            since = f"{task.part.at:%Y-%m-%d %H:%M:%S} UTC" if task.part.at else "some time"
            state = "read, to be merged" if task.complete else f"{task.chunks} chunks so far"
            say(f"{outcome.source}: {task.part.text} are read again since {since} ({task.part.by}): {state}")


def say_dropped(outcome: Status) -> None:
    """Name the tables that were dropped at the source, and still stand in the lake."""
    for cut in outcome.last_cut.tables if outcome.last_cut is not None else ():
        if cut.dropped is not None:
            where = f"{cut.dropped.file:06d}:{cut.dropped.offset}"
            say(
                f"{outcome.source}: {cut.table} was dropped at source ({where}); {cut.lake_table} stands at its last state"
            )


def say_switch(outcome: Status) -> None:
    """Tell since when the epoch is, why, and who began it; nothing in the first."""
    if outcome.drain and outcome.drain.switches:
        last = outcome.drain.switches[-1]
        say(f"{outcome.source}: epoch {last.epoch} since {last.at:%Y-%m-%d %H:%M:%S} UTC: {last.why} ({last.by})")


def say_verified(source: str, verified: Sequence[Verified]) -> None:
    """Tell up to where tables were compared with their source, and which of them have drift; nothing before the first."""
    clean = [one for one in verified if one.clean]
    if clean:
        oldest = min(clean, key=lambda one: one.at)
        tables = "1 table equals its" if len(clean) == 1 else f"{len(clean)} tables equal their"
        say(
            f"{source}: {tables} source, compared since {oldest.at:%Y-%m-%d %H:%M:%S} UTC up to {oldest.position} or later"
        )
    for one in verified:
        if not one.clean:
            counts = ((one.missing, "missing"), (one.extra, "extra"), (one.different, "different"))
            said = ", ".join(f"{count} {what}" for count, what in counts if count) or "rows that were not looked at"
            last = f"{one.clean_at:%Y-%m-%d %H:%M:%S} UTC" if one.clean_at else "never"
            when = f"{one.at:%Y-%m-%d %H:%M:%S} UTC"
            say(f"{source}: {one.table} has drift: {said} at {one.position}, {when}; last without: {last}", style="red")


def say_who_holds(source: str, consumers: Sequence[ConsumerState]) -> None:
    """Name the consumers for which batches stay that are old enough to be collected."""
    for one in consumers:
        if one.holding:
            since = f"{one.moved_at:%Y-%m-%d %H:%M:%S} UTC" if one.moved_at else "it was made"
            text = f"{source}: {one.holding} old batches stay for {one.name}, whose cursor has not moved since {since}"
            say(text, style="yellow")


def _show_aside(source: str, one: Standing) -> None:
    record, fault = one.last, one.last.fault
    if fault is None:
        say(f"{source}: {one.table} is read anew since {record.at:%Y-%m-%d %H:%M:%S} UTC ({record.by}): {record.why}")
        say(f"  {way_back(record, source)}", style="bold")
        return
    behind = duration(max(0.0, (datetime.now(UTC) - (record.behind or record.at)).total_seconds()))
    state = "set aside" if record.open else "released, and read anew"
    say(f"{source}: {one.table} is {state}; it stands as of {one.position}, {behind} behind", style="yellow")
    say(f"  since {record.at:%Y-%m-%d %H:%M:%S} UTC, at {fault.position}: {fault.error}: {fault.reason}")
    say(f"  {way_back(record, source)}" if record.open else "  The next runs bring it back.", style="bold")


def _row(loaded: Loaded, outcome: Status | CdcError) -> Sequence[str | Text]:
    if isinstance(outcome, CdcError):
        return (Text(loaded.source, style="red"), Text(type(outcome).__name__, style="red"), *[""] * 7)
    cut = outcome.last_cut
    return (
        outcome.source,
        _position(outcome.drain),
        _position(outcome.lake),
        str(outcome.head or "?"),
        behind(outcome),
        duration(outcome.lag_seconds),
        _in_flight(outcome.drain),
        str(len(cut.tables)) if cut else "0",
        f"{cut.at:%Y-%m-%d %H:%M:%S} UTC" if cut else "never",
    )


def _position(at: Cursor | None) -> str:
    return str(at.position) if at else "not started"


def behind(outcome: Status) -> str:
    """Tell what the lake lacks; of earlier epochs, whose binlogs may be gone, in windows."""
    earlier = f"{outcome.pending_windows} windows of earlier epochs"
    return f"{earlier}, {size(outcome.pending_bytes)}" if outcome.pending_windows else size(outcome.pending_bytes)


def _in_flight(at: Cursor | None) -> str:
    if at is None:
        return ""
    counts = ((len(at.in_flight), "windows"), (len(at.open_snapshots), "snapshots"))
    return ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing"


@cursor.command("show")
def show(context: typer.Context, source: SourceName, consumer: ConsumerName = None, as_json: AsJson = False) -> None:
    """Show the cursors of a source, what is in flight, and their last moves."""
    pipeline = open_store_pipeline(config_of(find(context, source)))
    names = [name for name in pipeline.cursors.consumers(source) if consumer in (None, name)]
    cursors = [pipeline.cursors.load(source, name) for name in names]
    found = [one for one in cursors if one is not None]
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{source} has no cursors yet; its first plan makes {DRAIN} and {LAKE}")
    for one in found:
        _show_cursor(one)
        for info in pipeline.store.list(layout.replaced_cursors_prefix(source, one.consumer)):
            say(f"  replaced at {info.modified:%Y-%m-%d %H:%M:%S} UTC: store:{info.key}")


def _show_cursor(one: Cursor) -> None:
    say(f"{one.consumer}: {one.position} in epoch {one.epoch} of {one.identity}", style="bold")
    say(f"  generation {one.generation}, last event {one.event_time or 'none'}, GTIDs {one.gtid_set or 'none'}")
    for window in one.in_flight:
        say(f"  in flight: {window.id}")
    if one.lease is not None:
        say(f"  held by {one.lease.holder} until {one.lease.until:%Y-%m-%d %H:%M:%S} UTC")
    if one.interest is not None:
        say(f"  wants {_patterns(one.interest)}")
    for task in one.snapshots:
        state = "complete" if task.complete else f"{task.chunks} chunks so far"
        state = "given up" if task.given_up else state
        say(f"  snapshot of {task.part.text if task.part else task.name}: {state}")
    for record in one.aside:
        until = f"up to {record.until}, released by {record.released_by}" if record.until else "still"
        what = "set aside" if record.fault is not None else "wanted anew"
        say(f"  {record.table} {what} from {record.start} on, {until}")
    for switch in one.switches:
        say(
            f"  epoch {switch.epoch} since {switch.at:%Y-%m-%d %H:%M:%S} UTC ({switch.kind} by {switch.by}): {switch.why}"
        )
        say(
            f"    from {switch.left.position} of {switch.left.identity} to {switch.began.position} of {switch.began.identity}"
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
