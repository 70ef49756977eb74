"""Turns an exception into one message and an exit code."""

from __future__ import annotations

import traceback
from typing import Any

import typer

from cdc_lib.cli import registry
from cdc_lib.cli.output import exit_code, show_error
from cdc_lib.cli.settings import Settings
from cdc_lib.errors import CdcError

EXIT_STATUS = (
    "Exit status: 0 done; 1 an error, a difference or no answer; 2 a mistake in a file or command; 3 not known, as what "
    "could not be asked; 130 interrupted."
)
"""The exit codes of all commands."""


class Commands(registry.LazyGroup):
    """The root of all commands: a CdcError becomes a message; any other exception is a defect and keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            typer.Exit: with 2 for a ConfigError and 1 for other CdcErrors.
        """
        try:
            return super().invoke(ctx)
        except CdcError as error:
            if isinstance(ctx.obj, Settings) and ctx.obj.debug:
                traceback.print_exception(error)
            show_error(error)
            raise typer.Exit(exit_code(error)) from error
