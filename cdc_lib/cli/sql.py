"""``cdc sql``: a query over the lake tables of a source as of one transaction, without Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.get import AsOf, cut_at
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.rows import Format, RowFormat, print_rows


def sql(
    context: typer.Context,
    source: SourceName,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="One SELECT. Tables are database.table, as at the source.")
    ],
    as_of: AsOf = "latest",
    form: RowFormat = Format.TABLE,
    as_json: AsJson = False,
) -> None:
    """Run a query over the lake tables, all as of one cut.

    The last cut, or an earlier one: a transaction of the source.
    DuckDB computes it in this process. It sees all columns and rows of the lake tables, and can change nothing.

    Example:
        cdc sql shop "SELECT state, count(*) FROM shop.orders GROUP BY state"
        cdc sql shop "SELECT * FROM shop.orders WHERE total >= 100" --as-of 2026-01-31T12:00:00 --format csv
    """
    config = config_of(find(context, source))
    with lake_reader("read.lake").Lake.open(config) as lake:
        cut = lake.at(cut_at(config, as_of))
        print_rows(cut.sql(query), Format.JSON if as_json else form)
