"""``cdc``: the whole pipeline from the command line, without Airflow."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli import (
    anew,
    backfill,
    consumers,
    cursors,
    doctor,
    gc,
    head,
    maintain,
    places,
    redrain,
    release,
    rollback,
    rounds,
    stages,
    status,
    tail,
    verify,
)
from cdc_lib.cli.context import DEFAULT_SOURCES, Settings
from cdc_lib.cli.errors import Commands
from cdc_lib.cli.output import say

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its boxes show local variables, and one of them may be a password
    help="Batch change data capture from MySQL and MariaDB into Apache Iceberg.",
)


@app.callback()
def options(
    context: typer.Context,
    sources: Annotated[
        Path, typer.Option("--sources", envvar="CDC_SOURCES", help="Folder of the source files.")
    ] = DEFAULT_SOURCES,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Take the options that stand before every command."""
    context.obj = Settings(sources, debug)


def version() -> None:
    """Print the installed version."""
    say(f"lakecdc {installed_version('lakecdc')}")


for command in (
    rounds.run,
    stages.plan,
    stages.drain,
    stages.merge,
    status.status,
    places.seek,
    places.rewind,
    places.switch,
    doctor.doctor,
    head.head,
    tail.tail,
    consumers.consumers,
    gc.gc,
    maintain.maintain,
    backfill.backfill,
    redrain.redrain,
    release.release,
    anew.snapshot,
    rollback.rollback,
    verify.verify,
    version,
):
    app.command()(command)
app.add_typer(stages.ack, name="ack")
for command in (cursors.export, cursors.restore):
    status.cursor.command()(command)
app.add_typer(status.cursor, name="cursor")
