"""Prints rows of lake tables: as a table, JSON, CSV or a Parquet file."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from cdc_lib.cli.lake.preview import show_rows
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.errors import ConfigError

SHOWN = 100
"""Rows that are printed for people if they do not say how many."""


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


RowFormat = Annotated[
    Format,
    typer.Option("--format", help="csv and parquet write all rows to standard output; parquet needs a file or a pipe."),
]


def limit_of(limit: int | None, form: Format) -> int | None:
    """Return how many rows to read; None for all.

    Args:
        limit: what the option says.
        form: how the rows are printed.
    """
    return SHOWN if limit is None and form in (Format.TABLE, Format.JSON) else limit


def print_rows(rows: Any, form: Format) -> None:
    """Print rows to standard output.

    Args:
        rows: a stream of Arrow batches.
        form: how they are printed.

    Raises:
        ConfigError: a Parquet file would be printed to a terminal.
    """
    if form in (Format.CSV, Format.PARQUET):
        if form is Format.PARQUET and sys.stdout.isatty():
            raise ConfigError("a Parquet file is not for a terminal", hint="Add > rows.parquet to the command.")
        lake_reader("read.output").write(rows, form.value, sys.stdout.buffer)
        return
    show_rows(lake_reader("lake.catalog").shown(rows.read_all()), as_json=form is Format.JSON)
