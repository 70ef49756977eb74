"""``cdc lake schema``: the columns of a lake table."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, table


def schema(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    as_json: AsJson = False,
) -> None:
    """Show the columns of a lake table.

    Columns that begin with _ are the pipeline's own. Types are those of Iceberg.

    Example:
        cdc lake schema shop shop.orders
    """
    found = lake_reader("lake.metadata").columns_of(config_of(find(context, source)), table_name)
    if as_json:
        print_json(found)
        return
    rows = ((one.name, one.type, "" if one.nullable else "not null", "key" if one.is_key else "") for one in found)
    table(("column", "type", "nulls", "key"), rows)
