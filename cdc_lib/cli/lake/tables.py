"""``cdc lake tables``: the lake tables of a source, as the catalog describes them."""

from __future__ import annotations

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find, open_store_pipeline
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.store.cuts import last_cut


def tables(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the lake tables of a source, with mode, key, number of rows and files, and what waits for maintenance.

    The tables are those of the last cut. The number of rows comes from the metadata of the table; it is ? where these do not
    have it.

    Example:
        cdc lake tables shop
    """
    config = config_of(find(context, source))
    cut = last_cut(open_store_pipeline(config).store, source)
    if cut is None:
        if as_json:
            print_json([])
        else:
            say(f"{source} has no lake tables yet; its first merge makes them")
        return
    found = lake_reader("lake.metadata").described(config, [one.table for one in cut.tables])
    if as_json:
        print_json(found)
        return
    rows = (
        (
            one.lake_table,
            ", ".join(one.tables),
            one.mode,
            ", ".join(one.key) or "none",
            _count(one.rows),
            f"{one.files:,}",
            one.waits_for,
        )
        for one in found
    )
    table(("lake table", "source tables", "mode", "key", "rows", "files", "waits for maintenance"), rows)


def _count(rows: int | None) -> str:
    return "?" if rows is None else f"{rows:,}"
