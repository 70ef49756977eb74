"""``cdc seek``, ``cdc rewind`` and ``cdc switch``: find a place in a binlog, and let the drain cursor go on there."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, caller, config_of, find, open_pipeline
from cdc_lib.cli.output import print_json, say, size, table
from cdc_lib.config.start import StartAt, position, timestamp
from cdc_lib.errors import ConfigError
from cdc_lib.pipeline import Found

Time = Annotated[str | None, typer.Option("--time", help="All that committed then or later: 2026-11-21T06:00:00Z.")]
Gtid = Annotated[str | None, typer.Option("--gtid", help="All transactions that are not in this set of GTIDs.")]
At = Annotated[str | None, typer.Option("--position", help="file:offset; inside a transaction: its beginning.")]


def seek(
    context: typer.Context,
    source: SourceName,
    time: Time = None,
    gtid: Gtid = None,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Show where in the server's binlog a time, a set of GTIDs or a position lies; nothing is moved."""
    found = open_pipeline(config_of(find(context, source))).seek(_wanted(time, gtid, at))
    if as_json:
        print_json(found)
    else:
        _show(found)


def rewind(
    context: typer.Context,
    source: SourceName,
    time: Time = None,
    gtid: Gtid = None,
    at: At = None,
    undo: Annotated[bool, typer.Option("--undo", help="Back to where the cursor was before its last move.")] = False,
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the move.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Move the drain cursor to a time, a set of GTIDs or a position; asks before, and keeps where it was."""
    pipeline = open_pipeline(config_of(find(context, source)))
    wanted = None if undo and (time, gtid, at) == (None, None, None) else _wanted(time, gtid, at)
    if wanted is not None:
        found = pipeline.seek(wanted)
        _show(found)
        if found.back_bytes is not None and found.back_bytes < 0:
            say("The changes in between will never be in the lake.", style="bold yellow")
    if not yes and not typer.confirm(f"Move the drain cursor of {source}?"):
        say("nothing was moved")
        return
    moved = pipeline.rewind(wanted, by=caller("rewind"), why=why)
    say(f"drain cursor at {moved.position} in epoch {moved.epoch}; cdc rewind {source} --undo takes it back")


def switch(
    context: typer.Context,
    source: SourceName,
    to: Annotated[str, typer.Option("--to", metavar="HOST:PORT", help="The server, or one of its standbys.")],
) -> None:
    """Let a source go on at another of its servers, exactly by GTIDs or a little before; the epoch changes."""
    host, _, port = to.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{to!r} is not HOST:PORT", hint="Write it as db2.example.com:3306.")
    pipeline = open_pipeline(config_of(find(context, source)))
    moved = pipeline.switch(host, int(port), by=caller("switch"))
    say(f"drain cursor at {moved.position} in epoch {moved.epoch} of {moved.identity}")


def _wanted(time: str | None, gtid: str | None, at: str | None) -> StartAt:
    if sum(value is not None for value in (time, gtid, at)) != 1:
        raise ConfigError(
            "name one place", hint="--time 2026-11-21T06:00:00Z, --gtid SET or --position binlog.000012:4."
        )
    try:
        if time is not None:
            return StartAt(timestamp=timestamp(time))
        return StartAt(position=position(at)) if at is not None else StartAt(gtid=gtid)
    except ValueError as error:
        raise ConfigError(str(error), hint="cdc seek --help shows the forms.") from error


def _show(found: Found) -> None:
    place = found.place
    rows = [
        ("server", str(place.identity)),
        ("position", str(place.position)),
        ("last commit before it", f"{place.time:%Y-%m-%d %H:%M:%S.%f} UTC" if place.time else "unknown"),
        ("GTIDs before it", place.gtid_set or "none"),
        ("behind it", f"{size(found.to_head_bytes)} up to the head {found.head}"),
    ]
    if found.cursor is not None and found.back_bytes is not None:
        way = "before" if found.back_bytes >= 0 else "behind"
        rows.append(("from the cursor", f"{size(abs(found.back_bytes))} {way} {found.cursor}"))
    table(("", "found"), rows)
