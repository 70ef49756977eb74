"""``cdc lake find``: every place in the store and the lake that holds values of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of
from cdc_lib.cli.context import find as find_source
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import NOT_KNOWN, print_json, say, table
from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source
from cdc_lib.store.objects.open import open_store

TableOfRows = Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")]
KeyOfRow = Annotated[
    list[str] | None, typer.Argument(metavar="KEY", help="One value for each column of the key, in order.")
]
KeysOfRows = Annotated[
    str,
    typer.Option(
        "--keys",
        metavar="FILE",
        help="Instead of a key: CSV without a header, one key on a line.",
    ),
]
WhichRows = Annotated[
    str,
    typer.Option(
        "--where", metavar="CONDITION", help="Instead of a key: the rows that meet a condition in DuckDB's SQL."
    ),
]


def find(
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
            help="Also look for the values that the found rows have in these columns, which no other row has.",
        ),
    ] = "",
    value: Annotated[
        list[str] | None, typer.Option("--value", metavar="TEXT", help="Also look for this text; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find every place in the store and the lake that holds values of a row, also of one that was deleted.

    Exits with 0 when nothing is found, with 1 when something is, with 3 when nothing is and a place could not be read.

    Example:
        cdc lake find shop shop.customers 42
        cdc lake find shop shop.customers 42 --columns mail,phone
        cdc lake find shop shop.customers --where "mail = 'ann@example.com'" --json
        cdc lake find shop shop.customers 42 --value ann@example.com
    """
    config = config_of(find_source(context, source))
    needles = lake_reader("erase.wanted").wanted(config, table_name, keys_of(key, keys), where, value or [])
    opened = Source.over(config, open_store(config.store))
    search = lake_reader("erase.search").RowSearch(opened, TableName.parse(table_name), needles)
    if names := names_in(columns):
        search.look_for_values(names)
    result = search.run()
    if as_json:
        print_json(result)
    else:
        show(result)
    raise typer.Exit(1 if result.found else NOT_KNOWN if result.unread else 0)


def keys_of(key: list[str] | None, file: str) -> list[list[str]]:
    """Return the keys that a command names: by its arguments, or in a file.

    Raises:
        ConfigError: by both, or the file cannot be read or has none.
    """
    if not file:
        return [key] if key else []
    if key:
        raise ConfigError("a key and --keys are given", hint="Give one of them.")
    try:
        with Path(file).open(encoding="utf-8-sig") as lines:
            keys: list[list[str]] = lake_reader("erase.wanted").keys_in(lines)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", hint="Correct --keys.") from error
    if not keys:
        raise ConfigError(f"{file} has no key", hint="Write one on a line.")
    return keys


def names_in(columns: str) -> list[str]:
    """Return the names of columns in the text of an option."""
    return [name.strip() for name in columns.split(",") if name.strip()]


def show(result: Any) -> None:
    """Print what a search found, and what could not be read."""
    for title, places in (("what", result.found), ("not read, because", result.unread)):
        if places:
            table(("kind", "place", title), ((one.kind, one.place, one.what) for one in places))
    say(
        f"{counted(len({one.place for one in result.found}), 'place')} of {counted(result.objects, 'object')} hold values of the row"
    )
