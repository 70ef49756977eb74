"""``cdc scan``: rows of a lake table in key order, read without Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.get import AsOf, Columns, EveryColumn, Fresh, WithDeleted, chosen, cut_at
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.rows import Format, RowFormat, limit_of, print_rows
from cdc_lib.store.objects.open import open_store


def scan(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    lower: Annotated[
        str,
        typer.Option("--key-from", help="The first key, or its first parts; a JSON list for several columns."),
    ] = "",
    upper: Annotated[str, typer.Option("--key-to", help="The last key, or the first parts of the last keys.")] = "",
    prefix: Annotated[
        str,
        typer.Option(
            "--key-prefix",
            help="Instead of both: the first parts of the keys. A text, or the last text of a JSON list, is what the part begins with.",
        ),
    ] = "",
    where: Annotated[
        str, typer.Option("--where", metavar="CONDITION", help="Only rows that meet a condition in DuckDB's SQL.")
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="How many rows at most. Default: 100; all with csv and parquet."),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The last key first.")] = False,
    columns: Columns = "",
    every_column: EveryColumn = False,
    deleted: WithDeleted = False,
    as_of: AsOf = "",
    fresh: Fresh = False,
    form: RowFormat = Format.TABLE,
    as_json: AsJson = False,
) -> None:
    """Show rows of a lake table in key order.

    The order is that of the lake's values: text is sorted byte by byte, and the source may sort it otherwise. Bytes are hex digits,
    times are in UTC.

    Example:
        cdc scan shop shop.orders --key-from 500 --key-to 599
        cdc scan shop shop.lines --key-prefix 5000
        cdc scan shop shop.customers --key-prefix DE-
        cdc scan shop shop.orders --reverse --limit 10
        cdc scan shop shop.orders --where "state = 'sent'"
        cdc scan shop shop.orders --format csv > orders.csv
    """
    form = Format.JSON if as_json else form
    config = config_of(find(context, source))
    store = open_store(config.store) if fresh else None
    with lake_reader("read.lake").Lake.open(config, store=store) as lake:
        reader = lake.table(table_name, cut=cut_at(config, as_of), fresh=fresh)
        parse = lake_reader("read.key_text").parse_key
        start, stop, first = (
            parse(reader.schema, reader.key, text) if text else None for text in (lower, upper, prefix)
        )
        names, most = chosen(reader, columns, every_column=every_column), limit_of(limit, form)
        options = {"prefix": first, "include_stop": True, "limit": most, "reverse": reverse, "deleted": deleted}
        if where:
            scan_where = lake_reader("read.where").scan_where
            rows = scan_where(reader, where, start, stop, names, **options)
        else:
            rows = reader.scan(start, stop, names, **options)
        print_rows(rows, form)
