"""``cdc status``: the state of the sources."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from cdc_lib.cli.consumers.list import say_who_holds
from cdc_lib.cli.context import AsJson, config_of, find, settings
from cdc_lib.cli.output import (
    NOT_KNOWN,
    console,
    duration,
    error_as_plain,
    exit_code,
    plain,
    print_json,
    say,
    show_error,
    size,
    table,
    worst,
)
from cdc_lib.config import Loaded, credentials_from_environment, load_sources
from cdc_lib.errors import CdcError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.pace import counted, listed
from cdc_lib.model.quarantine import LaggingTable
from cdc_lib.model.verify import Verified
from cdc_lib.model.waiting import unmerged
from cdc_lib.quarantine.tables import hint_of
from cdc_lib.source import Source
from cdc_lib.status.changed_rows import changed_row_findings, equal_tables
from cdc_lib.status.coverage import coverage_findings, current, summary_of
from cdc_lib.status.daily_checks import daily_findings
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.overview import asked_status
from cdc_lib.store.objects.open import open_store

_INTERVAL = 5
"""Seconds between two looks of ``--watch``."""

_UNKNOWN = {
    "server": "the end of the binlog is unknown, because the server cannot be asked",
    "store": "all but the end of the binlog is unknown, because the store cannot be read",
}
"""By who cannot be asked."""

_LONG = 60.0
"""Seconds of work from which on a backlog is named."""


def status(
    context: typer.Context,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help="One source. Default: all sources.")] = None,
    as_json: AsJson = False,
    watch: Annotated[
        bool, typer.Option("--watch", help=f"Show it again every {_INTERVAL} seconds, until Ctrl-C.")
    ] = False,
) -> None:
    """Show cursors, lag and pending work of each source.

    If the server cannot be asked, what the store says is shown, and the other way round; a line says why the rest is unknown. The exit
    status is then 3, and 1 if neither can be asked.

    Example:
        cdc status
        cdc status shop --json
        cdc status --watch
    """
    while True:
        loaded = [find(context, source)] if source else load_sources(settings(context).sources)
        outcomes = [(one, _status_of(one)) for one in loaded]
        if as_json:
            print_json([_as_plain(one, outcome) for one, outcome in outcomes])
        else:
            if watch:
                console().clear()  # of a terminal; it prints nothing into a file
                say(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, every {_INTERVAL} s; Ctrl-C ends", style="dim")
            _show(outcomes)
        if not watch:
            break
        sys.stdout.flush()
        time.sleep(_INTERVAL)
    if code := worst(_code(outcome) for _, outcome in outcomes):
        raise typer.Exit(code)


def _status_of(loaded: Loaded) -> Holdings | CdcError:
    """Return the status of one source, or the error of its file, which must not hide the others."""
    try:
        config = config_of(loaded)
    except CdcError as error:
        return error

    def stored() -> Source:
        return Source.over(config, open_store(config.store, impatient=True))

    return asked_status(config, partial(credentials_from_environment, config.server), stored)


def _code(outcome: Holdings | CdcError) -> int:
    return exit_code(outcome) if isinstance(outcome, CdcError) else (0, NOT_KNOWN, 1)[len(outcome.unanswered)]


def _as_plain(loaded: Loaded, outcome: Holdings | CdcError) -> dict[str, Any]:
    if isinstance(outcome, CdcError):
        return {"source": loaded.source, "error": error_as_plain(outcome)}
    retention = outcome.outlook.forecast if outcome.outlook is not None else None
    shown = {
        "source": outcome.source,
        "drain": outcome.drain,
        "lake": outcome.lake,
        "binlog_end": outcome.binlog_end,
        "lag_seconds": outcome.lag_seconds,
        "pending_bytes": outcome.pending_bytes,
        "last_batches": outcome.last_batches,
        "last_cut": outcome.cut,
        "consumers": outcome.consumers,
        "lagging": outcome.lagging,
        "retention": retention,
        "retention_warning": outcome.retention_warning,
        "pending_windows": outcome.pending_windows,
        "verified": outcome.verified,
        "stopped": outcome.stopped_tables,
        "foreign": outcome.foreign,
        "missing": [f"{one.what}. {one.hint}" for one in outcome.missing],
        "pending_snapshots": outcome.snapshots,
        "after_merge": outcome.after_merge,
        "coverage": outcome.coverage,
        "daily_checks": outcome.daily_checks,
        "unanswered": outcome.unanswered,
        "error": None,
    }
    return {name: plain(value) for name, value in shown.items()}


def _show(outcomes: Sequence[tuple[Loaded, Holdings | CdcError]]) -> None:
    if not outcomes:
        say("no sources")
        return
    columns = (
        "source",
        "drained to",
        "merged to",
        "end of binlog",
        "pending",
        "lag",
        "in flight",
        "tables",
        "last cut",
    )
    table(columns, (_row(loaded, outcome) for loaded, outcome in outcomes))
    for _, outcome in outcomes:
        if isinstance(outcome, CdcError):
            show_error(outcome)
            continue
        for unanswered in outcome.unanswered:
            say(f"{outcome.source}: {_UNKNOWN[unanswered.who]}: {unanswered.what}", style="yellow")
            if unanswered.hint:
                say(f"  {unanswered.hint}", style="bold")
        if outcome.knows_store:
            _say_stored(outcome)


def _say_stored(outcome: Holdings) -> None:
    """Print what the store says, and how long the server keeps what the store lacks."""
    if outcome.retention_warning:
        say(f"{outcome.source}: {outcome.retention_warning}", style="yellow")
    say_backlog(outcome)
    say_who_holds(outcome.source, outcome.consumers)
    for one in outcome.lagging:
        _show_lagging(outcome.source, one)
    say_parts(outcome)
    say_dropped(outcome)
    say_failover(outcome)
    say_verified(outcome.source, outcome.verified)
    say_changed_rows(outcome)
    say_coverage(outcome)
    say_daily_checks(outcome)
    say_missing(outcome)
    say_stopped(outcome)
    say_foreign(outcome)


def say_coverage(outcome: Holdings) -> None:
    """Print how much of the tables was compared by ranges, and what is wrong or late."""
    config = outcome.config
    if not outcome.coverage and config.verify.cover_every is None:
        return
    coverages = current(outcome.coverage, config.verify, outcome.cut)
    source, now, period = outcome.source, datetime.now(UTC), config.verify.cover_every
    if period is not None and (found := summary_of(coverages, period, now)) is not None:
        tables = counted(found.tables, "table")
        since = max(found.since, now - period)
        oldest, one = found.oldest, found.oldest_range
        last = (
            f"oldest range: {oldest.table}, compared {one.at:%Y-%m-%d %H:%M:%S} UTC as of {one.position}"
            if one is not None
            else f"some ranges of {oldest.table} were not compared yet"
        )
        say(
            f"{source}: {found.ratio:.0%} of the rows of {tables} were compared by ranges since {since:%Y-%m-%d %H:%M:%S} UTC; {last}"
        )
    for left in coverages if period is not None else ():
        if left.skipped:
            say(f"{source}: {left.table} is not compared by ranges: {left.skipped}")
    began = outcome.lake.began_at if outcome.lake is not None else None
    findings = coverage_findings(source, config.verify, outcome.coverage, outcome.verified, outcome.cut, now, began)
    for finding in findings:
        say(f"{source}: {finding.what}. {finding.hint}", style="red" if finding.level == "error" else "yellow")


def say_backlog(outcome: Holdings) -> None:
    """Print how much is not drained and how long that takes, if it is known and takes a minute or longer."""
    backlog = outcome.backlog if outcome.asked else None
    if backlog is not None and (backlog.seconds or 0.0) >= _LONG:
        say(f"{outcome.source}: {backlog}")


def say_parts(outcome: Holdings) -> None:
    """Print the partial snapshots, with who requested them and their progress."""
    for task in unmerged(outcome.drain, outcome.lake) if outcome.drain is not None else ():
        if task.selection is not None:
            since = f"{task.selection.at:%Y-%m-%d %H:%M:%S} UTC" if task.selection.at else "some time"
            state = "read, to be merged" if task.complete else task.progress
            say(f"{outcome.source}: {task.selection.text} are read again since {since} ({task.selection.by}): {state}")


def say_dropped(outcome: Holdings) -> None:
    """Print the tables that were dropped at the source and still exist in the lake."""
    for cut in outcome.cut.tables if outcome.cut is not None else ():
        if cut.dropped is not None:
            where = f"{cut.dropped.file:06d}:{cut.dropped.offset}"
            say(f"{outcome.source}: {cut.table} was dropped at source ({where}); {cut.lake_table} is at its last state")


def say_failover(outcome: Holdings) -> None:
    """Print since when the epoch is current, why, and who began it; nothing in the first epoch."""
    if outcome.drain and outcome.drain.epoch_changes:
        last = outcome.drain.epoch_changes[-1]
        why = f": {last.why}" if last.why else ""
        say(f"{outcome.source}: epoch {last.epoch} since {last.at:%Y-%m-%d %H:%M:%S} UTC{why} ({last.by})")


def say_verified(source: str, verified: Sequence[Verified]) -> None:
    """Print up to which position tables were compared with their source, and which have drift."""
    clean = [one for one in verified if one.clean]
    if clean:
        oldest = min(clean, key=lambda one: one.at)
        tables = "1 table equals its" if len(clean) == 1 else f"{len(clean)} tables equal their"
        say(
            f"{source}: {tables} source, compared since {oldest.at:%Y-%m-%d %H:%M:%S} UTC up to {oldest.position} or later"
        )
    for one in verified:
        if not one.clean:
            last = f"{one.clean_at:%Y-%m-%d %H:%M:%S} UTC" if one.clean_at else "never"
            when = f"{one.at:%Y-%m-%d %H:%M:%S} UTC"
            say(
                f"{source}: {one.table} has drift: {one.drift_text} at {one.position}, {when}; last without: {last}",
                style="red",
            )


def say_changed_rows(outcome: Holdings) -> None:
    """Print up to which position the rows that merges changed equal the source, and which do not."""
    equal = equal_tables(outcome.after_merge, outcome.verified)
    if equal:
        oldest = min(equal, key=lambda one: one.equal_at or one.at)
        rows = sum(one.equal for one in equal)
        gtids = f" (GTIDs {oldest.equal_gtid_set})" if oldest.equal_gtid_set else ""
        tables = counted(len(equal), "table")
        say(
            f"{outcome.source}: {counted(rows, 'row')} of {tables} that merges changed last equal the source, compared since "
            f"{oldest.equal_at:%Y-%m-%d %H:%M:%S} UTC up to {oldest.equal_position}{gtids} or later; "
            "this says nothing about their other rows"
        )
    findings = changed_row_findings(outcome.source, outcome.after_merge, outcome.verified, outcome.cut)
    for one in findings:
        say(f"{outcome.source}: {one.what}. {one.hint}", style="red" if one.level == "error" else "yellow")


def say_daily_checks(outcome: Holdings) -> None:
    """Print how many windows were decoded a second time on the last day, and which batches differ."""
    checks = outcome.daily_checks
    if checks is None:
        return
    done = checks.of_day
    equal, uncomparable = sum(one.equal for one in done), sum(one.uncomparable for one in done)
    rest = f", {uncomparable:,} not comparable" if uncomparable else ""
    say(
        f"{outcome.source}: {len(done)} of {counted(len(checks.windows), 'window')} of {checks.day} decoded a second time: "
        f"{counted(equal, 'change')} equal{rest}"
    )
    for one in daily_findings(outcome.source, checks):
        say(f"{outcome.source}: {one.what}. {one.hint}", style="red")


def say_missing(outcome: Holdings) -> None:
    """Print a missing cursor or batch, with a hint."""
    for one in outcome.missing:
        say(f"{outcome.source}: {one.what}. {one.hint}", style="red")


def say_stopped(outcome: Holdings) -> None:
    """Print the lake tables that the last merge could not merge, with hints."""
    for one in outcome.stopped_tables:
        say(f"{outcome.source}: {', '.join(one.tables)}: {one.code}: {one.what}", style="red")
        say(f"  {one.hint}", style="bold")


def say_foreign(outcome: Holdings) -> None:
    """Print the foreign commits to lake tables since their last comparison."""
    for one in outcome.foreign:
        say(f"{outcome.source}: {one}", style="yellow")
    if tables := sorted({table for one in outcome.foreign for table in one.tables}):
        say(f"  cdc verify {outcome.source} {' '.join(tables)} finds rows that differ from the source", style="bold")


def _show_lagging(source: str, one: LaggingTable) -> None:
    record, fault = one.last, one.last.fault
    if fault is None:
        say(f"{source}: {one.table} is read again since {record.at:%Y-%m-%d %H:%M:%S} UTC ({record.by}): {record.why}")
        say(f"  {hint_of(record, source)}", style="bold")
        return
    lag = duration(max(0.0, (datetime.now(UTC) - (record.oldest_missing_commit or record.at)).total_seconds()))
    state = "quarantined" if record.is_open else "released, and read again"
    say(f"{source}: {one.table} is {state}; it is as of {one.position}, {lag} behind", style="yellow")
    say(f"  since {record.at:%Y-%m-%d %H:%M:%S} UTC, at {fault.position}: {fault.code}: {fault.reason}")
    say(f"  {hint_of(record, source)}" if record.is_open else "  The next runs bring it back.", style="bold")


def _row(loaded: Loaded, outcome: Holdings | CdcError) -> Sequence[str | Text]:
    if isinstance(outcome, CdcError):
        return (Text(loaded.source, style="red"), Text("see below", style="red"), *[""] * 7)
    cut, end = outcome.cut, str(outcome.binlog_end or "?")
    if not outcome.knows_store:
        return (outcome.source, "?", "?", end, *["?"] * 5)
    return (
        outcome.source,
        "no drain yet" if outcome.drain and outcome.drain.has_begun_only else _position(outcome.drain),
        _position(outcome.lake) if cut or not outcome.lake else "no merge yet",
        end,
        pending(outcome),
        duration(outcome.lag_seconds),
        _in_flight(outcome.drain),
        str(len(cut.tables)) if cut else "0",
        f"{cut.at:%Y-%m-%d %H:%M:%S} UTC" if cut else "never",
    )


def _position(at: Cursor | None) -> str:
    return str(at.position) if at else "not started"


def pending(outcome: Holdings) -> str:
    """Return the work that the lake lacks: snapshots, windows of earlier epochs (whose binlogs may be purged), bytes of binlog."""
    windows = counted(outcome.pending_windows, "window") + " of earlier epochs" if outcome.pending_windows else ""
    known = (listed((outcome.snapshots, "snapshot")), windows, size(outcome.pending_bytes))
    return ", ".join(filter(None, known))


def _in_flight(at: Cursor | None) -> str:
    if at is None:
        return ""
    return listed((len(at.in_flight), "window"), (len(at.open_snapshots), "snapshot")) or "nothing"
