"""What every command needs: the folder of sources, and the file of one of them."""

from __future__ import annotations

import os
import socket
from typing import Annotated, cast

import typer

from cdc_lib.cli.settings import Settings
from cdc_lib.config import (
    Loaded,
    SourceConfig,
    load_sources,
)
from cdc_lib.config.base import duration
from cdc_lib.errors import ConfigError

SourceName = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of a source: its file without .yaml.")]
"""The argument that most commands take."""

ConsumerName = Annotated[
    str | None, typer.Argument(metavar="CONSUMER", help="drain, lake or a consumer's name. Default: all.")
]
"""The second argument of the commands about cursors."""

ComparedTables = Annotated[
    list[str] | None,
    typer.Argument(metavar="TABLE", help="Patterns of database.table. Default: verify.tables."),
]
"""The second argument of the commands that compare tables."""

KeyValues = Annotated[
    list[str],
    typer.Argument(
        metavar="KEY", help="One value for each column of the key, in order; after -- where one begins with a minus."
    ),
]
"""The third argument of the commands about one row."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
"""The option of commands that programs read."""


def settings(context: typer.Context) -> Settings:
    """Return the global options, which come before the command."""
    return cast(Settings, context.find_root().obj)


def find(context: typer.Context, source: str) -> Loaded:
    """Load the file of a source; the result may contain an error.

    Raises:
        ConfigError: the file does not exist.
    """
    folder = settings(context).sources
    loaded = load_sources(folder)
    for one in loaded:
        if one.source == source:
            return one
    names = ", ".join(one.source for one in loaded) or "none"
    raise ConfigError(f"there is no source {source!r} in {folder}", hint=f"The sources there: {names}.")


def checked_duration(option: str, text: str) -> str:
    """Return the text of a duration if it is valid.

    Raises:
        ConfigError: it is not a valid duration.
    """
    try:
        duration(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text}: {error}") from error
    return text


def config_of(loaded: Loaded) -> SourceConfig:
    """Return the config of a loaded file.

    Raises:
        ConfigError: the file is not valid.
    """
    if loaded.config is None:
        raise loaded.error or ConfigError(f"{loaded.path} was not loaded")
    return loaded.config


def caller(command: str) -> str:
    """Return the caller's name for the cursor's record of moves."""
    user = os.environ.get("USER") or f"uid {os.getuid()}"
    return f"cdc {command} by {user} on {socket.gethostname()}"
