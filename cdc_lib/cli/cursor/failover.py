"""``cdc cursor failover``: another server of a source."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.errors import ConfigError


def failover(
    context: typer.Context,
    source: SourceName,
    to: Annotated[str, typer.Option("--to", metavar="HOST:PORT", help="The server, or one of its standbys.")],
    accept_missing: Annotated[
        str,
        typer.Option(
            "--accept-missing",
            metavar="GTIDS",
            help="Continue although the server never had these transactions, which were read.",
        ),
    ] = "",
) -> None:
    """Continue at another server of the source, exactly by GTIDs or a little earlier, in a new epoch.

    Example:
        cdc cursor failover shop --to db2.example.com:3306
    """
    host, _, port = to.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{to!r} is not HOST:PORT", hint="Write it as db2.example.com:3306.")
    pipeline = open_pipeline(config_of(find(context, source)))
    moved = requests.fail_over(pipeline, host, int(port), by=caller("cursor failover"), missing=accept_missing)
    say(f"drain cursor at {moved.position} in epoch {moved.epoch} of {moved.identity}")
