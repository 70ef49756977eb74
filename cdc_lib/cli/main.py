"""``cdc``: the whole pipeline from the command line, without Airflow. Commands are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.errors import EXIT_STATUS, Commands
from cdc_lib.cli.output import show_log
from cdc_lib.cli.settings import Settings, default_sources
from cdc_lib.cli.version import version as print_version

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
        print_version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    sources: Annotated[
        Path | None,
        typer.Option(
            "--sources",
            envvar="CDC_SOURCES",
            help="Folder of the source files. Default: sources below the DAG files of AIRFLOW_HOME, else dags/sources.",
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
