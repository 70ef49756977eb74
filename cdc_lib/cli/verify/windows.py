"""``cdc verify windows``: drained windows decoded a second time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from cdc_lib.backfill.archive import period_of
from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import plain, print_json, say, table
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config.patterns import matches, problem
from cdc_lib.errors import ConfigError
from cdc_lib.model.batch_check import WINDOW_FIGURES, BatchReport, DifferentChange, WindowCheck
from cdc_lib.model.pace import counted
from cdc_lib.verify.batches.daily import DailyVerification
from cdc_lib.verify.batches.windows import BatchVerification, Choice

DEFAULT_LAST = 10
"""Windows that are compared if nothing bounds them."""

_SHOWN = 20
"""Maximum printed differences of one window; the JSON has more."""

_KINDS = {
    "missing": "not in the batch",
    "extra": "only in the batch",
    "operation": "other operation",
    "values": "other values",
}


def choice_of(
    last: int | None, since: str | None, until: str | None, windows: Sequence[str], tables: Sequence[str]
) -> Choice:
    """Return the windows and tables to compare, by the options as they are typed.

    Raises:
        ConfigError: a time or a pattern is not valid.
    """
    for pattern in tables:
        if wrong := problem(pattern):
            raise ConfigError(f"not a pattern of tables: {wrong}", hint="database.table, with * and ? for several.")
    period = period_of(since, until) if since or until else None
    bounded = period is not None or bool(windows)

    def wants(database: str, name: str) -> bool:
        return not tables or any(matches(pattern, database, name) for pattern in tables)

    return Choice(last or (None if bounded else DEFAULT_LAST), period, tuple(windows), wants)


def windows(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="Patterns of database.table. Default: all captured tables."),
    ] = None,
    as_json: AsJson = False,
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", metavar="N", min=1, help="So many of the last windows. Default: 10."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Windows with commits from then on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Windows with commits before then.")
    ] = None,
    window: Annotated[
        list[str] | None, typer.Option("--window", metavar="ID", help="A window of cdc batches list --json.")
    ] = None,
    daily: Annotated[
        bool, typer.Option("--daily", help="Today's random windows, as verify.daily_windows says, and no others.")
    ] = False,
) -> None:
    """Decode drained windows a second time, and compare every change with the batch; exits with 1 when some differ.

    It also exits with 1 when no window was compared. Neither tables nor lake are read. mysql-replication decodes the windows, so that
    an error of the first decoder shows. What it cannot judge is listed with the reason.

    Example:
        cdc verify windows shop --last 5
        cdc verify windows shop shop.orders --since 2026-01-01T00:00:00Z
        cdc verify windows shop --daily
    """
    pipeline = open_pipeline(config_of(find(context, source)))
    verification = BatchVerification(pipeline)
    if not daily:
        choice = choice_of(last, since, until, window or (), tables or ())
        _print(verification.run(choice), as_json=as_json)
        return
    if last or since or until or window or tables:
        raise ConfigError(
            "--daily chooses windows of all tables, and takes nothing else that chooses",
            hint="cdc verify windows {source} without --daily does.",
            source=source,
        )
    count = pipeline.config.verify.daily_windows
    if not count:
        raise ConfigError(
            "the source file does not say how many windows are compared each day",
            hint="verify.daily_windows: 5 in the source file.",
            source=source,
        )
    _print(DailyVerification(verification, count).run(), as_json=as_json, may_be_done=True)


def _print(report: BatchReport, *, as_json: bool, may_be_done: bool = False) -> None:
    if as_json:
        print_json({**plain(report), "clean": report.clean})
    else:
        show(report)
    done = may_be_done and not report.windows
    if not report.clean or (report.compared_nothing and not done):
        raise typer.Exit(1)


def show(report: BatchReport) -> None:
    """Print a report as tables."""
    if not report.windows:
        say(f"{report.source} has no windows to compare")
        return
    table(("window", "", *WINDOW_FIGURES), map(_row, report.windows))
    for one in report.windows:
        if one.skipped:
            say(f"{one.window} is not comparable: {one.skipped}", style="yellow")
        if one.archived:
            say(f"{one.window} was decoded from its raw archive, not from the server: {one.archived}")
        if one.differences:
            _show_differences(one)
    _show_left_out(report)
    if report.compared_nothing:
        say(f"{report.source}: no window was compared", style="bold red")
    say(f"{report.source}: decoded again by {report.decoder}")


def _row(one: WindowCheck) -> tuple[str | Text, ...]:
    if one.skipped:
        return (one.window, Text("not comparable", style="yellow"), *[""] * len(WINDOW_FIGURES))
    state = Text("differs", style="bold red") if one.differing else Text("equal", style="green")
    return (one.window, state, *one.figures)


def _show_differences(one: WindowCheck) -> None:
    say(f"{one.window}:", style="bold")
    lines = [line for change in one.differences[:_SHOWN] for line in _lines(change)]
    table(("table", "place", "what", "column", "decoded again", "batch", "file"), lines)
    if one.differing > _SHOWN:
        say(f"and more: --json has {len(one.differences)} of {one.differing}")


def _lines(change: DifferentChange) -> list[tuple[str, ...]]:
    place = f"{change.file}:{change.offset} row {change.row}"
    what = _KINDS[change.kind]
    if not change.cells:
        return [(change.table, place, what, "", "", "", change.part)]
    return [
        (change.table, place, what, cell.column, _value(cell.decoded), _value(cell.stored), change.part)
        for cell in change.cells
    ]


def _show_left_out(report: BatchReport) -> None:
    """Print what was not compared, added up over the windows."""
    counts: dict[tuple[str, str], int] = {}
    for window in report.windows:
        for one in window.not_comparable:
            what = f"{one.table}.{one.column}" if one.column else str(one.table)
            counts[what, one.why] = counts.get((what, one.why), 0) + one.changes
    for (what, why), changes in sorted(counts.items()):
        say(f"{what}: {counted(changes, 'change')} not comparable: {why}", style="yellow")


def _value(text: str | None) -> str:
    return "NULL" if text is None else text
