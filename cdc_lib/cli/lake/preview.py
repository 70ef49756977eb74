"""``cdc lake preview``: some rows of a lake table, read without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say, table, width
from cdc_lib.model.pace import counted

_WIDEST = 40
"""Maximum characters of a cell in a table; JSON has all of them."""


def preview(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many rows.")] = 10,
    every_column: Annotated[bool, typer.Option("--all", help="Also the columns that begin with _.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show some rows of a lake table, in no particular order: a line each, with the columns that fit.

    Example:
        cdc lake preview shop shop.orders --limit 3
    """
    config = config_of(find(context, source))
    lake = lake_reader("lake.catalog")
    rows = lake.shown(lake.preview(config, table_name, limit))
    names = [name for name in rows if every_column or not name.startswith("_")]
    show_rows({name: rows[name] for name in names}, as_json=as_json)


def show_rows(rows: dict[str, list[Any]], *, as_json: bool) -> None:
    """Print rows: a line each, with the columns that fit, or as a JSON list.

    Args:
        rows: values of each column.
        as_json: whether JSON is printed.
    """
    if as_json:
        print_json([{name: rows[name][number] for name in rows} for number in range(_count(rows))])
        return
    columns = {name: [cell(value) for value in values] for name, values in rows.items()}
    fitting = fit(columns, width())
    table(fitting, zip(*(columns[name] for name in fitting), strict=True), whole_lines=True)
    if hidden := list(rows)[len(fitting) :]:
        say(f"{counted(len(hidden), 'more column')}: {', '.join(hidden)}; --json shows everything")
    say(counted(_count(rows), "row"))


def fit(columns: dict[str, list[str]], room: int) -> Sequence[str]:
    """Return the first columns that fit into a line, at least one.

    Args:
        columns: cells by name.
        room: characters of a line.
    """
    taken = 1
    fitting: list[str] = []
    for name, cells in columns.items():
        taken += max(map(len, (name, *cells))) + 3  # a border and a blank on both sides
        if fitting and taken > room:
            break
        fitting.append(name)
    return fitting


def _count(rows: dict[str, list[Any]]) -> int:
    return max(map(len, rows.values()), default=0)


def cell(value: object) -> str:
    """Return a value on one line."""
    text = "NULL" if value is None else str(value)
    text = "".join(char if char.isprintable() else "·" for char in text[: _WIDEST + 1])
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
