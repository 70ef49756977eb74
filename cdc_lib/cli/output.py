"""How the commands print: tables for people, JSON for programs, errors on the error stream."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from cdc_lib.errors import CdcError, ConfigError

WIDTH_OF_A_FILE = 200
"""Columns if the output is not a terminal: piped output is not wrapped at 80."""


def console(*, stderr: bool = False) -> Console:
    """Return a console on the current standard streams."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH_OF_A_FILE, highlight=False)


def say(text: str, style: str = "") -> None:
    """Print one line without markup."""
    console().print(Text(text, style=style), soft_wrap=True)


def agreed(question: str, *, yes: bool) -> bool:
    """Ask a person, unless ``--yes`` was given; after a no, print that nothing was changed."""
    if yes or typer.confirm(question):
        return True
    say("nothing was changed")
    return False


class _ToStderr(logging.Handler):
    """Log handler: whole lines on the current error stream, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def show_log() -> None:
    """Show the library's progress and warnings."""
    log = logging.getLogger("cdc_lib")
    if not any(isinstance(handler, _ToStderr) for handler in log.handlers):
        log.addHandler(_ToStderr())
    log.setLevel(logging.INFO)


def width() -> int:
    """Return the width of a line in characters."""
    return console().width


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, whole_lines: bool = False) -> None:
    """Print a table; cells are never parsed as markup.

    Args:
        columns: names of the columns.
        rows: cells of each row.
        whole_lines: whether each row is one line, with cells cut to fit.
    """
    heads = [
        Column(Text(name), no_wrap=whole_lines, overflow="ellipsis" if whole_lines else "fold") for name in columns
    ]
    grid = Table(*heads, header_style="bold", expand=False)
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console().print(grid)


def show_error(error: CdcError) -> None:
    """Print what went wrong, where, and what to do."""
    out = console(stderr=True)
    out.print(Text.assemble(("error: ", "bold red"), (error.message, "red")), soft_wrap=True)
    if error.context:
        context = ", ".join(f"{name}={value}" for name, value in error.context.items())
        out.print(Text(f"  at {context}", style="dim"), soft_wrap=True)
    if error.hint:
        out.print(Text(f"  {error.hint}", style="bold"), soft_wrap=True)


def exit_code(error: CdcError) -> int:
    """Return 2 for a ConfigError, 1 for everything else."""
    return 2 if isinstance(error, ConfigError) else 1


NOT_KNOWN = 3
"""Exit status if nothing is wrong, as far as is known."""


def worst(codes: Iterable[int]) -> int:
    """Return the exit status of a command over several: that of an error, else :data:`NOT_KNOWN` if one has it, else 0."""
    found = {0, *codes}
    return max(found - {NOT_KNOWN}) or max(found)


def error_as_plain(error: CdcError) -> dict[str, Any]:
    """Return an error as plain values for JSON."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "context": error.context,
        "retryable": error.retryable,
    }


def print_json(value: Any) -> None:
    """Print a value of dataclasses and plain types as JSON: one line for programs, indented for people at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(plain(value), indent=indent, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """Convert dataclasses, dates, times and paths into JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def size(count: int | None) -> str:
    """Format a number of bytes: ``12.3 MiB``."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def duration(seconds: float | None) -> str:
    """Format a duration: ``3 s``, ``5 min``, ``2.5 h``, ``3.0 d``."""
    if seconds is None:
        return "?"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"
