"""``cdc changes``: the rows of a lake table that differ between two cuts."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.get import Columns, EveryColumn, chosen, cut_at
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.rows import Format, RowFormat, print_rows


def changes(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    since: Annotated[
        str, typer.Option("--since-cut", metavar="CUT", help="A cut: a time, a GTID, file:offset, or its id.")
    ],
    until: Annotated[
        str, typer.Option("--until-cut", metavar="CUT", help="A later cut. Default: the last one.")
    ] = "latest",
    columns: Columns = "",
    every_column: EveryColumn = False,
    form: RowFormat = Format.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show rows that differ between two cuts of the lake.

    Inserted, updated and deleted ones, in key order.
    A row that changed more than once is shown once, as it is at the later cut. A deleted row is shown as it was.

    Example:
        cdc changes shop shop.orders --since-cut 2026-01-31T12:00:00
        cdc changes shop shop.orders --since-cut 2026-01-31 --until-cut 2026-02-01 --format parquet > orders.parquet
    """
    config = config_of(find(context, source))
    with lake_reader("read.lake").Lake.open(config) as lake:
        before, after = (lake.at(cut_at(config, which)).table(table_name) for which in (since, until))
        names = chosen(after, columns, every_column=every_column)
        rows = lake_reader("read.changes").net_changes(before, after, names)
    last = rows.column_names[-1:]
    print_rows(rows.select([*last, *rows.column_names[:-1]]).to_reader(), Format.JSON if as_json else form)
