"""``cdc verify``: a table against its source, and which rows differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cdc_lib.cli.context import AsJson, ComparedTables, SourceName, find
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.cli.verify.whole_tables import compared
from cdc_lib.model.verify import FIGURES, Report, RowDifference, TableReport
from cdc_lib.store import documents
from cdc_lib.verify.report_html import page

_SHOWN = 20
"""Maximum printed rows of one table; the JSON and the HTML page have more."""


def verify(
    context: typer.Context,
    source: SourceName,
    tables: ComparedTables = None,
    as_json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML page.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Read wrong rows again from the source and write them into the lake.")
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="DURATION", help="How long to wait for rows in flight, per table: 60s."),
    ] = None,
    statement_delay: Annotated[
        str | None,
        typer.Option("--statement-delay", metavar="DURATION", help="Time between two statements at the source: 100ms."),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Read the lake with Spark, where merge says, and not in this process.")
    ] = False,
) -> None:
    """Compare tables with the lake, row by row.

    Lists the rows that differ. Exits with 1 when some do, or when no table was compared.

    Checksums of key ranges are compared first, then rows of the ranges that are not the same. A row that differs is compared
    again when the lake has all changes from before it was read: a row whose change has not arrived is in flight, and not wrong.
    The lake is read in this process. Spark reads it with --spark, and tables that only Spark can read.

    --repair reads the wrong rows from the source, writes them into the lake and compares them again. It does not overwrite newer
    changes. A merge on Spark does it.

    Example:
        cdc verify shop
        cdc verify shop shop.orders --repair --html report.html
    """
    loaded = find(context, source)
    report = compared(loaded, tables or [], repair=repair, spark=spark, wait=wait, statement_delay=statement_delay)
    if html is not None:
        html.write_text(page(report), encoding="utf-8")
    if as_json:
        print_json({**documents.to_plain(report), "clean": report.clean})
    else:
        show(report)
    if status := exit_status(report):
        raise typer.Exit(status)


def exit_status(report: Report) -> int:
    """Return 0 if all is equal, 1 if rows differ or no table was compared."""
    return 0 if report.clean and not report.compared_nothing else 1


def show(report: Report) -> None:
    """Print a report as tables."""
    table(("table", "", *FIGURES), map(_row, report.tables))
    for one in report.tables:
        if one.skipped:
            say(f"{one.table} was not compared: {one.skipped}", style="yellow")
        if one.refused:
            say(f"{one.table} was not repaired: {one.refused}", style="yellow")
        if one.kept:
            say(f"{one.table}: {one.kept}", style="yellow")
        for column in one.uncompared:
            say(f"{one.table}.{column.column} was not compared: {column.why}", style="yellow")
        if one.rows:
            _show_rows(one)
    if report.compared_nothing:
        say(f"{report.source}: no table was compared", style="bold red")
    say(f"{report.source}: the lake was at {report.position} in epoch {report.epoch}")


def _row(one: TableReport) -> tuple[str | Text, ...]:
    if one.skipped:
        return (one.table, Text("not compared", style="yellow"), *[""] * len(FIGURES))
    state = Text("same", style="green") if one.clean else Text("drift", style="bold red")
    return (one.table, state, *one.figures)


def _show_rows(one: TableReport) -> None:
    lines = [line for row in one.rows[:_SHOWN] for line in _lines(row)]
    say(f"{one.table}:", style="bold")
    table(("key", "what", "column", "source", "lake"), lines)
    if len(one.rows) > _SHOWN:
        say(f"and more: --html and --json have {len(one.rows)} of {one.drift + one.repaired}")


def _lines(row: RowDifference) -> list[tuple[str, ...]]:
    key = ", ".join(f"{name}={_value(value)}" for name, value in row.key.items())
    if row.kind == "copies":
        return [(key, f"{row.source_copies} times at the source, {row.lake_copies} in the lake", "", "", "")]
    if not row.cells:
        return [(key, row.kind, "", "", "")]
    return [(key, row.kind, cell.column, _value(cell.source), _value(cell.lake)) for cell in row.cells]


def _value(text: str | None) -> str:
    return "NULL" if text is None else text
