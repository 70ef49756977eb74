"""``cdc``: the whole pipeline from the command line, without Airflow. Commands are imported when they run."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.errors import EXIT_STATUS, Commands
from cdc_lib.cli.output import say, show_log
from cdc_lib.cli.settings import Settings, default_sources

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, which may be passwords
    help="Batch change data capture from MySQL and MariaDB into Apache Iceberg.",
    epilog=f"Example: cdc run shop\n\n{EXIT_STATUS}",
)


def _version(show: bool) -> None:
    if show:
        say(f"lakecdc {version('lakecdc')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources",
            envvar="CDC_SOURCES",
            help="Folder of the source files. Default: sources beside AIRFLOW_HOME's DAGs, else dags/sources.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the installed version and end.")
    ] = False,
) -> None:
    """Store the global options, which come before the command."""
    show_log()
    context.obj = Settings(sources or default_sources(), debug)
