"""``cdc lake erase``: remove every trace of rows that the source no longer has."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli import job
from cdc_lib.cli.context import AsJson, SourceName, caller, config_of
from cdc_lib.cli.context import find as find_source
from cdc_lib.cli.lake.find import KeyOfRow, KeysOfRows, TableOfRows, WhichRows, keys_of, names_in, show
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import NOT_KNOWN, agreed, plain, print_json, say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName


def erase(
    context: typer.Context,
    source: SourceName,
    table_name: TableOfRows,
    key: KeyOfRow = None,
    keys: KeysOfRows = "",
    where: WhichRows = "",
    columns: Annotated[
        str,
        typer.Option(
            "--columns",
            metavar="A,B",
            help="At the end, also look for the values that the rows have in these columns now.",
        ),
    ] = "",
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="TEXT", help="At the end, also look for this text; may be repeated."),
    ] = None,
    lake_only: Annotated[
        bool, typer.Option("--lake-only", help="Also if the source still has the rows, or cannot be asked.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove rows that the source deleted from the lake and the store, in every mode, and search for what is left.

    Their changes from before now stay away: later drains and backfills leave them out. Older snapshots and cuts of the lake table go.
    Run it again if it was stopped. It exits with 0 if nothing is left, with 1 if something is, with 3 if a place could not be read.

    Example:
        cdc lake erase shop shop.customers 42
        cdc lake erase shop shop.customers 42 --columns mail,phone --yes
        cdc lake erase shop shop.customers --keys left.csv
        cdc lake erase shop shop.customers --where "mail = 'ann@example.com'"
    """
    loaded = find_source(context, source)
    config, table = config_of(loaded), TableName.parse(table_name)
    erasing = lake_reader("erase.erasing").Erasing.of(
        open_pipeline(config), table, keys_of(key, keys), where, value or []
    )
    if not agreed(erasing.question, yes=yes or as_json):
        return
    erasure = erasing.begin(names_in(columns), by=caller("lake erase"), lake_only=lake_only)
    job.run_job("erase", loaded, f"--table={table}", f"--erasure={erasure.id}", to_stderr=as_json)
    erased = erasing.finish(erasure)
    result = erased.left
    code = 1 if result.found else NOT_KNOWN if result.unread else 0
    if as_json:
        print_json({"erasure": erasure.id, "rewritten": erased.rewritten, **plain(result)})
    else:
        show(result)
        ends = {
            0: "is complete",
            1: f"left something: {erased.remedy}, then run the same command again",
            NOT_KNOWN: "is not proved",
        }
        say(
            f"{counted(erased.rewritten, 'batch')} and comparisons written again; erasure {erasure.id} of {table} {ends[code]}"
        )
    raise typer.Exit(code)
