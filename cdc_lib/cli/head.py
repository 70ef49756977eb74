"""``cdc head``: the first rows of a lake table, read without Spark."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, config_of, find
from cdc_lib.cli.output import say, table
from cdc_lib.errors import ConfigError


def head(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many rows.")] = 10,
    every_column: Annotated[bool, typer.Option("--all", help="Also the columns that begin with _.")] = False,
) -> None:
    """Show some rows of a lake table, in no particular order."""
    config = config_of(find(context, source))
    if importlib.util.find_spec("pyiceberg") is None:
        raise ConfigError(
            "reading the lake needs pyiceberg, which is not installed", hint='pip install "lakecdc[read]"'
        )
    # The module imports pyiceberg, an optional part of the installation: it must not be needed by the other commands.
    rows = importlib.import_module("cdc_lib.read.lake").head(config, table_name, limit)
    names = [name for name in rows.column_names if every_column or not name.startswith("_")]
    table(names, ([_text(row[name]) for name in names] for row in rows.to_pylist()))
    say(f"{rows.num_rows} rows")


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    return value.hex() if isinstance(value, bytes) else str(value)
